//! Makes simulated nodes, shows them, and runs programs in them.

use clap::{Args, Parser, Subcommand};
use nvidia_ml::{
    fault::{self, Latency},
    folder::{self, Parts},
    handling,
    notation::{self, NAMED},
    place,
    shared::Shard,
    show,
    table::Gpus,
    trouble::Trouble,
};
use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Usage errors exit as other illegal input does.
const EXIT_INPUT: u8 = 3;

/// Simulated NVIDIA GPU nodes: a libnvidia-ml.so.1 whose MIG can be written.
///
/// NODE is COUNTxGPU (8xa100-40gb), several joined by commas, a named node (dgx-a100), or the path of a node
/// file. GPU is an index, a UUID or a PCI address. A node is made when it is first named and lasts between
/// commands.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The GPUs and the named nodes that can be simulated
    List,
    /// Print the environment in which programs see the node, as lines for `eval`
    Env {
        #[command(flatten)]
        node: Node,
        #[command(flatten)]
        trace: Trace,
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Run a program that sees the node
    Run {
        #[command(flatten)]
        node: Node,
        #[command(flatten)]
        trace: Trace,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// The node's GPUs, modes and instances
    Show {
        #[command(flatten)]
        node: Node,
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Replace a GPU's mode and instances, whatever is in use there
    Set {
        #[command(flatten)]
        node: Node,
        /// Index, UUID or PCI address
        gpu: String,
        /// off, on, or instances: '1g@0* 1g@1 2g@2 3g@4' (* = in use), '3g@4[1c,2c]'
        #[arg(value_name = "NOTATION")]
        geometry: String,
    },
    /// Reset a GPU, whoever uses it
    Reset {
        #[command(flatten)]
        node: Node,
        /// Index, UUID or PCI address
        gpu: String,
    },
    /// Raise an XID, as the hardware would
    Xid {
        #[command(flatten)]
        node: Node,
        /// GPU, GPU/GI or GPU/GI/CI: the GPU by index, UUID or PCI address, instances by id
        #[arg(value_name = "GPU[/GI[/CI]]")]
        place: String,
        /// The XID's number
        code: u32,
        /// Raise it so many times
        #[arg(long, default_value_t = 1)]
        times: u32,
    },
    /// Make calls fail, hang, answer late or lie
    ///
    /// A fault is `fn=GLOB [gpu=N] [nth=N | every | rate=0.1 seed=N | for=2s] THEN`, and THEN is one of
    /// code=N, hang=5s, hang=forever, hang=unkillable, stale=2s, lost, activation=CODE, gap=INDEX,
    /// `profile=ID count=N`, `profile=ID slot=N`.
    Fault {
        #[command(flatten)]
        node: Node,
        #[command(subcommand)]
        action: FaultAction,
    },
    /// Make calls take their time
    Latency {
        #[command(flatten)]
        node: Node,
        /// none, fast, slow, or a file of `- FUNCTION: TIME` lines
        #[arg(value_name = "LATENCIES")]
        latencies: String,
        /// Times so much
        #[arg(long, value_name = "X", default_value_t = 1.0)]
        scale: f64,
    },
    /// Unload and load the driver
    ReloadDriver {
        #[command(flatten)]
        node: Node,
    },
    /// Reboot the node
    Reboot {
        #[command(flatten)]
        node: Node,
    },
}

#[derive(Subcommand)]
enum FaultAction {
    /// Add faults: `fn=nvmlGpuInstanceDestroy gpu=2 nth=1 code=19`
    Add {
        /// One fault each
        #[arg(value_name = "FAULT", required_unless_present = "file")]
        faults: Vec<String>,
        /// A file with one fault a line; `-` is standard input, # begins a comment
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// The faults there are, with how many calls each was for
    List {
        /// Print a JSON array instead
        #[arg(long)]
        json: bool,
    },
    /// Take faults away; what hangs in them goes on
    Clear {
        /// Its number in the list; without one, all
        #[arg(value_name = "NUMBER")]
        number: Option<usize>,
    },
}

#[derive(Args)]
struct Node {
    /// COUNTxGPU, a named node, or a node file
    #[arg(value_name = "NODE")]
    node: String,
    /// Folder of the node's state
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Let other users open the node that is made
    #[arg(long, requires = "state")]
    shared: bool,
}

#[derive(Args)]
struct Trace {
    /// Write a JSON line to this file for each call
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed standard output or error leaves no one to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(EXIT_INPUT) } else { ExitCode::SUCCESS };
        }
    };
    match carry_out(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            // A closed standard error leaves no one to tell.
            let _ = writeln!(io::stderr(), "nvml-simulator: {trouble}");
            ExitCode::from(trouble.exit_code())
        }
    }
}

fn carry_out(command: Verb) -> Result<(), Trouble> {
    match command {
        Verb::List => print(&list()?),
        Verb::Env { node, trace, json } => {
            let environment = environment(&node.open()?, &trace)?;
            print(&if json { as_json(&environment)? } else { as_exports(&environment)? })
        }
        Verb::Run { node, trace, program } => {
            let environment = environment(&node.open()?, &trace)?;
            let Some((name, arguments)) = program.split_first() else {
                return Err(Trouble::input("no program to run"));
            };
            let error = Command::new(name).args(arguments).envs(environment).exec();
            Err(Trouble::Failed(format!("cannot run {}: {error}", name.to_string_lossy())))
        }
        Verb::Show { node, json } => {
            let shard = node.open()?;
            print(&if json { format!("{:#}\n", show::json(&shard)) } else { show::text(&shard) })
        }
        Verb::Set { node, gpu, geometry } => {
            let shard = node.open()?;
            handling::set(&shard, handling::find(&shard, &gpu)?, &geometry)
        }
        Verb::Reset { node, gpu } => {
            let shard = node.open()?;
            handling::reset(&shard, handling::find(&shard, &gpu)?)
        }
        Verb::Xid { node, place, code, times } => {
            let shard = node.open()?;
            let place = place::find(&shard, &place)?;
            (0..times).try_for_each(|_| handling::xid(&shard, place, code))
        }
        Verb::Fault { node, action } => {
            let shard = node.open()?;
            match action {
                FaultAction::Add { mut faults, file } => {
                    if let Some(file) = file {
                        faults.extend(lines(&file)?);
                    }
                    fault::add(&shard, &faults).map(drop)
                }
                FaultAction::List { json } => print(&faults(&shard, json)),
                FaultAction::Clear { number } => fault::clear(&shard, number),
            }
        }
        Verb::Latency { node, latencies, scale } => {
            let shard = node.open()?;
            shard.faults.set_latencies(&Latency::all(&latencies, scale)?)
        }
        Verb::ReloadDriver { node } => handling::reload_driver(&node.open()?),
        Verb::Reboot { node } => handling::reboot(&node.open()?),
    }
}

impl Node {
    fn open(&self) -> Result<Shard, Trouble> {
        let description = notation::parse(&self.node)?;
        folder::open(&description, self.state.as_deref(), self.shared, &Parts::find()?)
    }
}

fn print(text: &str) -> Result<(), Trouble> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Trouble::Failed(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

fn list() -> Result<String, Trouble> {
    let mut out = String::new();
    for kind in Gpus::load()?.kinds() {
        let note = match (kind.refusal, kind.mig) {
            (Some(why), _) => format!(" (not available: {why})"),
            (None, false) => " (no MIG)".to_owned(),
            (None, true) => String::new(),
        };
        out.push_str(&format!("{:<28} {}{note}\n", kind.key, kind.products.join(", ")));
    }
    for (name, text) in NAMED {
        let what = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        out.push_str(&format!("{name:<28} {what}\n"));
    }
    Ok(out)
}

/// The lines of a file that say something.
fn lines(file: &Path) -> Result<Vec<String>, Trouble> {
    let text = match file.to_str() {
        Some("-") => io::read_to_string(io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    let text = text.map_err(|e| Trouble::io("read", file, &e))?;
    let said = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(said.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn faults(shard: &Shard, json: bool) -> String {
    let list = shard.faults.list();
    if json {
        let rows = list.iter().map(
            |fault| serde_json::json!({ "number": fault.number, "fault": fault.text, "calls": fault.hits }),
        );
        return format!("{:#}\n", serde_json::Value::Array(rows.collect()));
    }
    let row =
        |fault: &fault::Listed| format!("{:>2}  {}  ({} calls)\n", fault.number, fault.text, fault.hits);
    list.iter().map(row).collect()
}

/// What a program needs to see the node.
fn environment(shard: &Shard, trace: &Trace) -> Result<Vec<(&'static str, OsString)>, Trouble> {
    let folder = &shard.folder;
    let mut all = vec![
        ("LD_LIBRARY_PATH", prepended(&folder.join("lib"), "LD_LIBRARY_PATH")?),
        ("PATH", prepended(&folder.join("bin"), "PATH")?),
        ("NVML_SIMULATOR_STATE", folder.clone().into_os_string()),
    ];
    if let Some(file) = &trace.trace {
        let file = std::path::absolute(file)
            .map_err(|e| Trouble::Failed(format!("cannot use {}: {e}", file.display())))?;
        all.push(("NVML_SIMULATOR_TRACE", file.into_os_string()));
    }
    Ok(all)
}

/// The list in a variable with `first` at its head, once.
fn prepended(first: &Path, variable: &str) -> Result<OsString, Trouble> {
    let now = env::var_os(variable).unwrap_or_default();
    let rest = env::split_paths(&now).filter(|path| path != first && !path.as_os_str().is_empty());
    env::join_paths(std::iter::once(first.to_owned()).chain(rest)).map_err(|_| {
        Trouble::Failed(format!("{} cannot stand in {variable}: it has a colon", first.display()))
    })
}

fn utf8(value: &OsStr) -> Result<&str, Trouble> {
    value.to_str().ok_or_else(|| Trouble::Failed(format!("{} is not UTF-8", value.to_string_lossy())))
}

fn as_json(environment: &[(&str, OsString)]) -> Result<String, Trouble> {
    let mut object = serde_json::Map::new();
    for (name, value) in environment {
        object.insert((*name).to_owned(), utf8(value)?.into());
    }
    Ok(format!("{}\n", serde_json::Value::Object(object)))
}

fn as_exports(environment: &[(&str, OsString)]) -> Result<String, Trouble> {
    let mut out = String::new();
    for (name, value) in environment {
        out.push_str(&format!("export {name}='{}'\n", utf8(value)?.replace('\'', r"'\''")));
    }
    Ok(out)
}
