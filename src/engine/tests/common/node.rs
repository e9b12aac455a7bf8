//! A simulated node of its own for each test.

use migd_core::{
    layout,
    node::Node,
    plan::{Plan, Policy, audit, make},
    target,
};
use migd_engine::Site;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A node whose state lies in a folder that goes with it.
pub(crate) struct Simulated {
    name: String,
    folder: tempfile::TempDir,
}

impl Simulated {
    /// A node by the simulator's notation, as it is after a fresh boot.
    pub(crate) fn new(name: &str) -> Simulated {
        Simulated { name: name.to_owned(), folder: tempfile::tempdir().unwrap() }
    }

    /// Runs a command of the simulator about this node, such as `set` with a GPU and what it holds.
    pub(crate) fn simulate(&self, verb: &str, arguments: &[&str]) -> String {
        let output = Command::new(built().join("nvml-simulator"))
            .args([verb, &self.name])
            .args(arguments)
            .arg("--state")
            .arg(self.state())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{verb} {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Where its driver is.
    pub(crate) fn site(&self) -> Site {
        let trace = self.trace_file();
        let said = self.simulate("env", &["--trace", trace.to_str().unwrap()]);
        let pair = |line: &str| -> Option<(OsString, OsString)> {
            let (key, value) = line.trim_start_matches("export ").split_once('=')?;
            Some((key.into(), value.trim_matches(['\'', '"']).into()))
        };
        Site {
            program: Some(env!("CARGO_BIN_EXE_migd-engine-worker").into()),
            environment: said.lines().filter_map(pair).collect(),
            ..Site::default()
        }
    }

    /// The names of the driver's functions that were called so far, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.trace_file()).unwrap_or_default();
        let name = |line: &str| -> String {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["fn"].as_str().unwrap().to_owned()
        };
        text.lines().map(name).collect()
    }

    /// Those of them that change something.
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes =
            |call: &String| ["Create", "Destroy", "SetMigMode"].iter().any(|word| call.contains(word));
        self.calls().into_iter().filter(writes).collect()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("node")
    }

    fn trace_file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}

/// The plan for a layout given as the rules of a `version: v1` file, one per line in flow style.
pub(crate) fn planned(node: &Node, rules: &[&str]) -> Plan {
    let rules: String = rules.iter().map(|rule| format!("    - {rule}\n")).collect();
    let text = format!("version: v1\nmig-configs:\n  test:\n{rules}");
    let file = layout::parse(&text, "test.yaml").unwrap();
    let target = target::resolve(file.find("test").unwrap(), node).unwrap();
    let plan = make(node, &target, &Policy::default()).unwrap();
    let notes = audit(&plan, node);
    assert!(notes.is_empty(), "{notes:?}");
    plan
}

/// Where cargo puts programs, with the simulator built: a test of this package alone does not build it.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let worker = Path::new(env!("CARGO_BIN_EXE_migd-engine-worker"));
        let programs = worker.parent().unwrap();
        // `make test` has built everything before and says so.
        if std::env::var_os("MIGD_BUILT").is_none() {
            let profile = match programs.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                other => other,
            };
            let status = Command::new(env!("CARGO"))
                .args(["build", "--workspace", "-q", "--offline", "--profile", profile])
                .env("CARGO_TARGET_DIR", programs.parent().unwrap())
                .status()
                .unwrap();
            assert!(status.success(), "the workspace does not build");
        }
        programs.to_owned()
    })
}
