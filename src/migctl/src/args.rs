//! What can be typed.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

/// Keeps this node's GPUs cut into MIG instances as a layout says.
#[derive(Debug, Parser)]
#[command(name = "migctl", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Which node, and how to answer.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The exit codes, as `--help` shows them.
const EXIT_CODES: &str = "\
Exit codes: 0 done, or nothing to do; 1 failed inside; 2 the plan has changes; 3 invalid input;
4 blocked by what is in use; 5 needs a reset or a reboot; 6 failed and rolled back; 7 failed and not rolled
back; 8 driver unavailable; 9 permission denied; 10 cancelled or out of time.";

/// Options of every command.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Common {
    /// Work on a simulated node instead of this machine's driver: 8xa100-40gb, dgx-h100, or a file
    #[arg(long, global = true, value_name = "NODE")]
    pub(crate) simulate: Option<String>,
    /// Where the simulated node is kept
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Write every call of the simulated driver to this file, as JSON lines
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Answer with one JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every GPU, drawn to scale in slices, with its instances
    Status,
    /// Show what applying a layout would do, and do nothing; exit 2 if there is something to do
    Plan(Layout),
    /// Make this node what a layout says
    Apply(Layout),
    /// Say where a profile can be created on a GPU now; if nowhere, what is in the way and what would help
    Explain {
        /// Index, UUID or PCI address
        #[arg(value_name = "GPU")]
        gpu: String,
        /// By name or by slices: 3g.20gb, 3g, 1g+me
        #[arg(value_name = "PROFILE")]
        profile: String,
    },
    /// List the layouts, where they stand and which of them this node can have
    Layouts(Layouts),
    /// Say everything that is wrong with layout files, without a GPU; with --for also whether they can be placed
    Check(Check),
    /// Show a layout in migd's form or mig-parted's, with the same meaning
    Show(Show),
    /// Write every layout that this node could have, with its GPUs' own names
    Generate {
        /// The form
        #[arg(long = "as", value_name = "FORM", default_value = "native")]
        form: Form,
    },
    /// Write what this node holds for others to read
    #[command(subcommand)]
    Export(Export),
    /// Write the JSON schema of layout files, which lets editors complete them
    Schema,
    /// Make, show and change simulated nodes (nvml-simulator); `migctl simulate --help` says how
    #[command(disable_help_flag = true)]
    Simulate {
        /// Handed to nvml-simulator as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
}

/// A layout by name.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Layout {
    /// The layout's name
    #[arg(value_name = "LAYOUT")]
    pub(crate) name: String,
    /// Only this GPU of the layout: index, UUID or PCI address; all others stay as they are
    #[arg(long, value_name = "GPU")]
    pub(crate) gpu: Option<String>,
    /// Where it stands.
    #[command(flatten)]
    pub(crate) file: File,
}

/// A layout file.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct File {
    /// The layout file, `-` for standard input; without it the search path and what migd ships
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

/// Which layouts to list.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Layouts {
    /// Also those that this node cannot have
    #[arg(long)]
    pub(crate) all: bool,
    /// Where they stand.
    #[command(flatten)]
    pub(crate) file: File,
}

/// What to check.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Check {
    /// Layout files, `-` for standard input; without any, those of the search path
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Also say which layouts can be placed on this node: 8xh100-sxm-80gb, dgx-h100, a node file, or `this` for the
    /// node at hand
    #[arg(long = "for", value_name = "NODE")]
    pub(crate) node: Option<String>,
}

/// A form of layout files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// migd's own.
    Native,
    /// mig-parted's `version: v1`.
    V1,
}

/// A layout to show.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Show {
    /// The layout's name
    #[arg(value_name = "LAYOUT")]
    pub(crate) name: String,
    /// The form
    #[arg(long = "as", value_name = "FORM", default_value = "native")]
    pub(crate) form: Form,
    /// With `--as v1`: what it comes to on this node, for what that form cannot say in general
    #[arg(long = "for", value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Where it stands.
    #[command(flatten)]
    pub(crate) file: File,
}

/// What to export.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Export {
    /// The present instances as a layout file that, applied, changes nothing
    Layout {
        /// What the layout is to be called
        #[arg(long, value_name = "NAME", default_value = "exported")]
        name: String,
        /// The form
        #[arg(long = "as", value_name = "FORM", default_value = "native")]
        form: Form,
    },
}
