//! Processes that hold a GPU or an instance, as NVML lists them and as apply respects them.

use migd_tests::Lab;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

/// A process that holds; it has said so.
struct Holder(Child);

impl Holder {
    fn of(lab: &Lab, words: &[&str]) -> Holder {
        let mut child = lab.simulator("hold", words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("until it ends"), "{line}");
        Holder(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn kill(self) {
        drop(self);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_held_instance_stays_and_its_holder_is_named_until_it_is_killed() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", "1g@0 1g@1 1g@2 1g@3"]).expect(0);
    let status = lab.status();
    let gi = status["gpus"][0]["instances"][3]["gi"].to_string();
    let holder = Holder::of(&lab, &[&format!("0/{gi}/0"), "--memory", "1024"]);
    assert_eq!(lab.holds(0), "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3*");
    let text = lab.run(&["status"]).expect(0).out;
    assert!(text.contains(&format!("in use by pid {}", holder.pid())), "{text}");
    lab.trace();
    let blocked = lab.run(&["apply", "all-largest", "--json"]).expect(4).json();
    assert!(blocked.to_string().contains(&holder.pid().to_string()), "{blocked}");
    lab.trace();
    // What is free goes; what is held stays.
    lab.run(&["apply", "all-balanced"]).expect(0);
    assert!(lab.holds(0).contains("1g.5gb@3*"), "{}", lab.holds(0));
    holder.kill();
    lab.run(&["apply", "all-largest"]).expect(0);
    assert_eq!(lab.holds(0), "7g.40gb@0");
}

#[test]
fn each_kind_is_listed_by_its_function_with_pid_memory_and_instance() {
    let lab = Lab::new("2xh100-sxm-80gb");
    lab.simulated("set", &["0", "1g@0 3g@4"]).expect(0);
    let shown = lab.simulated("show", &["--json"]).expect(0).json();
    let gi = shown["gpus"][0]["instances"][1]["gi"].to_string();
    let kinds = ["CUDA", "graphics", "MPS"];
    let place = format!("0/{gi}/0");
    let inside = kinds.map(|kind| Holder::of(&lab, &[&place, "--as", kind, "--memory", "100"]));
    let whole = kinds.map(|kind| Holder::of(&lab, &["1", "--as", kind, "--memory", "7"]));
    // Has the first GPU open and works in none of its instances.
    let reader = Holder::of(&lab, &["0"]);
    let told = lab.python("processes.py", &[]).expect(0).json();
    let rows = |holder: &Holder, mib: u64, gi: Option<&str>| {
        let ids = gi.map_or((serde_json::Value::Null, serde_json::Value::Null), |gi| {
            (gi.parse::<u64>().unwrap().into(), 0.into())
        });
        serde_json::json!([[holder.pid(), mib << 20, ids.0, ids.1]])
    };
    for (at, kind) in ["compute", "graphics", "mps"].into_iter().enumerate() {
        let (held, all) = (rows(&inside[at], 100, Some(&gi)), rows(&whole[at], 7, None));
        assert_eq!(told["gpus"][0][kind], held, "{told}");
        assert_eq!(told["gpus"][1][kind], all, "{told}");
        // MIG devices come by their GPU instance's id, and this one's is the lower.
        assert_eq!(told["migs"][0][kind], held, "{told}");
        assert_eq!(told["migs"][1][kind], serde_json::json!([]), "{told}");
    }
    reader.kill();
    for holder in inside.into_iter().chain(whole) {
        holder.kill();
    }
    let told = lab.python("processes.py", &[]).expect(0).json();
    assert!(!told.to_string().contains("[["), "{told}");
}

#[test]
fn who_has_the_gpu_open_is_in_the_way_of_its_reset() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", "off"]).expect(0);
    let holder = Holder::of(&lab, &["0"]);
    let mut reset = lab.simulator("run", &["--", "nvidia-smi", "-r", "-i", "0"]);
    let refused = migd_tests::run(&mut reset).expect(255);
    assert!(refused.out.contains("in use"), "{}", refused.out);
    lab.run(&["apply", "all-balanced"]).expect(4);
    holder.kill();
    migd_tests::run(&mut reset).expect(0);
    lab.run(&["apply", "all-balanced"]).expect(0);
}

#[test]
fn its_devices_are_found_by_whoever_looks_through_proc() {
    let lab = Lab::new("2xa100-40gb");
    lab.simulated("set", &["1", "3g@4 1g@0"]).expect(0);
    // Outside of an enclosure the devices lie in the node's folder, inside they have their real names.
    let outside = Holder::of(&lab, &["1/2/0"]);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", outside.pid())).unwrap();
    let mut names: Vec<String> = fds
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .filter_map(|path| Some(path.to_str()?.rsplit_once("/dev/")?.1.to_owned()))
        .filter(|name| name.starts_with("nvidia"))
        .collect();
    names.sort();
    // 3 + 135 for each GPU before, 9 for each GPU instance id before, and 1 for the first compute instance.
    assert_eq!(names, ["nvidia-caps/nvidia-cap156", "nvidia-caps/nvidia-cap157", "nvidia1", "nvidiactl"]);
    let script = lab.file(
        "look.sh",
        "nvml-simulator hold --state \"$2\" \"$1\" 1/2/0 & sleep 0.3; ls -l /proc/$!/fd | sed -n 's|.* -> /dev/nv|nv|p' \
         | sort; kill $!",
    );
    let mut command = lab.simulator("run", &["--tree", "--", "bash"]);
    command.arg(script).arg(lab.node()).arg(lab.path("state"));
    let built = migd_tests::built().display().to_string();
    command.env("PATH", format!("{built}:{}", std::env::var("PATH").unwrap()));
    let inside = migd_tests::run(&mut command).expect(0);
    let found: Vec<&str> = inside.out.lines().filter(|line| line.starts_with("nvidia")).collect();
    assert_eq!(found, names, "{}", inside.err);
}

#[test]
fn what_is_not_there_cannot_be_held() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", "7g@0"]).expect(0);
    for (place, says) in
        [("1", "no GPU"), ("0/5", "no GPU instance `5`"), ("0/0/3", "no compute instance `3`")]
    {
        let refused = lab.simulated("hold", &[place]).expect(3);
        assert!(refused.err.contains(says), "{}", refused.err);
    }
    let refused = lab.simulated("hold", &["0", "--as", "OpenGL"]).expect(3);
    assert!(refused.err.contains("CUDA, graphics, MPS"), "{}", refused.err);
}
