//! What the end-to-end tests share: the built programs, a simulated node of one's own, its trace of driver calls.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use serde_json::Value;
use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// How long any program of a test may run: a bound against hanging, not a measure.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

/// The folder that the workspace's programs and the simulator's library were built into: this test's own.
pub fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = std::env::current_exe().expect("own path");
        let folder = own.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_owned();
        // A test run alone would else use stale programs: cargo builds only what the test itself links.
        if std::env::var_os("MIGD_TESTS_BUILT").is_none() {
            let profile = folder.file_name().and_then(|n| n.to_str()).unwrap_or("debug");
            let profile = if profile == "debug" { "dev" } else { profile };
            let status = Command::new(env!("CARGO"))
                .args(["build", "--workspace", "-q", "--offline", "--profile", profile])
                .env("CARGO_TARGET_DIR", folder.parent().expect("target"))
                .current_dir(root())
                .status()
                .expect("cargo runs");
            assert!(status.success(), "the workspace does not build");
        }
        folder
    })
}

/// A built program.
pub fn program(name: &str) -> PathBuf {
    let path = built().join(name);
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

/// The Python that has nvidia-ml-py; `make test` makes it.
pub fn python() -> PathBuf {
    let path = root().join("target/venv/bin/python");
    assert!(path.exists(), "{} is missing: run scripts/setup test", path.display());
    path
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// The exit code; a signal is a failure of the test.
    #[track_caller]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by {}: {self:?}", self.status))
    }

    /// The same, if the exit code is this one; else the test fails and shows everything.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "\n--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }
}

/// Runs a program to its end, within [`LIMIT`].
#[track_caller]
pub fn run(command: &mut Command) -> Ended {
    run_within(command, LIMIT)
}

/// Runs a program to its end, within a limit of its own.
#[track_caller]
pub fn run_within(command: &mut Command, limit: Duration) -> Ended {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = std::thread::spawn(move || text(&mut pipes.0));
    let err = std::thread::spawn(move || text(&mut pipes.1));
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > limit {
            let _ = child.kill();
            panic!("{command:?} did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ended { status, out: out.join().unwrap(), err: err.join().unwrap() }
}

fn text(pipe: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A simulated node of one's own, with a trace.
#[derive(Debug)]
pub struct Lab {
    folder: tempfile::TempDir,
    node: String,
}

impl Lab {
    /// A new node.
    pub fn new(node: &str) -> Lab {
        Lab { folder: tempfile::tempdir().unwrap(), node: node.to_owned() }
    }

    /// A node from a description.
    pub fn described(text: &str) -> Lab {
        let mut lab = Lab::new("");
        let file = lab.path("node.yaml");
        std::fs::write(&file, text).unwrap();
        lab.node = file.display().to_string();
        lab
    }

    /// A path in the lab's own folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file in the lab's own folder.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The node's notation.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// `migctl --simulate NODE …`, with the trace on.
    pub fn migctl(&self) -> Command {
        let mut command = Command::new(program("migctl"));
        command.arg("--simulate").arg(&self.node).arg("--state").arg(self.path("state"));
        command.arg("--trace").arg(self.path("trace"));
        // Not what lies in /etc of the machine that runs the test.
        command.env("MIGD_LAYOUT_PATH", self.path("layouts.d"));
        command
    }

    /// Runs `migctl --simulate NODE …` with these words.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Ended {
        run(self.migctl().args(words))
    }

    /// Runs `migctl simulate WORD NODE …`.
    #[track_caller]
    pub fn simulate(&self, word: &str, rest: &[&str]) -> Ended {
        let mut command = Command::new(program("migctl"));
        command.args(["simulate", word, "--state"]).arg(self.path("state")).arg(&self.node).args(rest);
        run(&mut command)
    }

    /// `nvml-simulator WORD NODE …` on this lab's node.
    pub fn simulator(&self, word: &str, rest: &[&str]) -> Command {
        let mut command = Command::new(program("nvml-simulator"));
        command.args([word, "--state"]).arg(self.path("state")).arg(&self.node).args(rest);
        command
    }

    /// Runs `nvml-simulator WORD NODE …` to its end.
    #[track_caller]
    pub fn simulated(&self, word: &str, rest: &[&str]) -> Ended {
        run(&mut self.simulator(word, rest))
    }

    /// Runs a Python script of tests/python on the node, traced.
    #[track_caller]
    pub fn python(&self, script: &str, words: &[&str]) -> Ended {
        let mut command = Command::new(program("migctl"));
        command.args(["simulate", "run", "--state"]).arg(self.path("state"));
        command.arg("--trace").arg(self.path("trace")).arg(&self.node).arg("--");
        command.arg(python()).arg(root().join("tests/python").join(script)).args(words);
        run(&mut command)
    }

    /// What `status --json` says.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.run(&["status", "--json"]).expect(0).json()
    }

    /// What GPU `index` holds, as `1g.5gb@0* 3g.20gb@4`.
    #[track_caller]
    pub fn holds(&self, index: usize) -> String {
        held(&self.status()["gpus"][index])
    }

    /// The driver calls since the last time this was asked.
    pub fn trace(&self) -> Vec<Value> {
        let path = self.path("trace");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// Compares with tests/tables/NAME; `MIGD_TABLES=overwrite` writes down what comes out now.
#[track_caller]
pub fn table(name: &str, found: &str) {
    let path = root().join("tests/tables").join(name);
    if std::env::var_os("MIGD_TABLES").is_some_and(|word| word == "overwrite") {
        return std::fs::write(&path, found).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    let rows = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let (written, found) = (rows(&written), rows(found));
    let lines =
        |sign: char, of: &std::collections::BTreeSet<String>, less: &std::collections::BTreeSet<String>| {
            of.difference(less).map(|row| format!("{sign} {row}\n")).collect::<String>()
        };
    assert!(
        written == found,
        "{}\n{}{}",
        path.display(),
        lines('-', &written, &found),
        lines('+', &found, &written)
    );
}

/// What a GPU of a status document holds, as `1g.5gb@0* 3g.20gb@4`.
pub fn held(gpu: &Value) -> String {
    let instances = gpu["instances"].as_array().unwrap_or_else(|| panic!("no instances: {gpu}"));
    let words = instances.iter().map(|i| {
        let star = if i["in_use"] == false { "" } else { "*" };
        format!("{}@{}{star}", i["profile"].as_str().unwrap(), i["start"])
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Those calls of a trace that change a node, by name: everything that creates, destroys, sets, resets, clears.
pub fn mutating(trace: &[Value]) -> Vec<&Value> {
    let changes = |name: &str| {
        ["Create", "Destroy", "Set", "Reset", "Clear", "Modify", "Remove"].iter().any(|verb| {
            name.match_indices(verb).any(|(at, _)| {
                // A verb stands after the object's name: nvmlDeviceSetMigMode, not nvmlEventSetWait.
                matches!(&name[..at], "nvmlDevice" | "nvmlGpuInstance" | "nvmlComputeInstance" | "nvmlSystem")
            })
        })
    };
    trace.iter().filter(|call| changes(call["fn"].as_str().unwrap())).collect()
}
