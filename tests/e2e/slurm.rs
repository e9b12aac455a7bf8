//! Slurm's own slurmd with its gpu_nvml plug-in, as Debian ships them, on the simulated library and the node's
//! files: it lists what the node holds, and goes wrong where it is known to.
//!
//! Expectations are of Slurm 22.05. `scripts/setup test` installs slurmd and unpacks the plug-in.

use migd_tests::{Ended, Lab, run};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    time::Instant,
};

const SLURMD: &str = "/usr/sbin/slurmd";

/// The folders of Slurm's plug-ins: the machine's, and the one with gpu_nvml.
fn plugins() -> String {
    let version = run(Command::new(SLURMD).arg("-V")).out;
    assert!(version.contains("22.05"), "these expectations are of Slurm 22.05, not of {version}");
    let unpacked = migd_tests::root().join("target/slurm/plugin/usr/lib");
    let folders = |under: PathBuf| -> Vec<String> {
        let entries = fs::read_dir(&under)
            .unwrap_or_else(|e| panic!("{}: {e}: run scripts/setup test", under.display()));
        let found = entries.map(|entry| entry.unwrap().path().join("slurm-wlm")).filter(|path| path.is_dir());
        found.map(|path| path.display().to_string()).collect()
    };
    [folders("/usr/lib".into()), folders(unpacked)].concat().join(":")
}

/// A node with Slurm's configuration of it.
struct Slurm(Lab);

impl Slurm {
    fn new(node: &str, gres: &str) -> Slurm {
        Slurm::on(Lab::new(node), gres)
    }

    fn on(lab: Lab, gres: &str) -> Slurm {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = lab.path("").display().to_string();
        let text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmdPort={port}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/none\nCryptoType=crypto/none\nSlurmdSpoolDir={folder}/spool\nSlurmdPidFile={folder}/pid\n\
             SlurmdLogFile={folder}/slurmd.log\nSlurmdDebug=debug2\nPluginDir={plugins}\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\nGresTypes=gpu\n\
             NodeName=lab0 NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} \
             ThreadsPerCore=1 RealMemory=1 Gres={gres} State=UNKNOWN\n\
             PartitionName=main Nodes=lab0 Default=YES State=UP\n",
            plugins = plugins(),
            cpus = std::thread::available_parallelism().unwrap()
        );
        lab.file("slurm.conf", &text);
        lab.file("gres.conf", "AutoDetect=nvml\n");
        fs::create_dir_all(lab.path("spool")).unwrap();
        Slurm(lab)
    }

    #[track_caller]
    fn set(self, gpu: usize, geometry: &str) -> Slurm {
        self.0.simulate("set", &[&gpu.to_string(), geometry]).expect(0);
        self
    }

    /// Runs slurmd to its end.
    #[track_caller]
    fn slurmd(&self, words: &[&str]) -> Ended {
        let conf = self.0.path("slurm.conf").display().to_string();
        let fixed = ["--tree", "--", SLURMD, "-f", &conf, "-N", "lab0"];
        self.0.simulate("run", &[&fixed[..], words].concat())
    }

    /// Its GRES as `slurmd -G` prints them, sorted: `TYPE FILE[,FILE…]` without /dev/.
    #[track_caller]
    fn gres(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.lines().into_iter().map(|line| field(&line, "Type=") + " " + &files(&line)).collect();
        all.sort();
        all
    }

    /// The lines that `slurmd -G` prints, one for each of its GRES.
    #[track_caller]
    fn lines(&self) -> Vec<String> {
        let said = self.slurmd(&["-G"]).expect(0).err;
        let lines = said
            .lines()
            .filter_map(|line| line.split_once("Gres Name=gpu ").map(|(_, rest)| rest.to_owned()));
        lines.collect()
    }

    /// What the plug-in finds, by its own log: starts slurmd as a daemon, and ends it once it has told.
    #[track_caller]
    fn detected(&self, words: &str) -> Vec<String> {
        let mut command = Command::new(migd_tests::program("nvml-simulator"));
        command.arg("run").arg(self.0.node()).arg("--state").arg(self.0.path("state"));
        command
            .args(["--tree", "--", SLURMD, "-D", "-vvv", "-N", "lab0", "-f"])
            .arg(self.0.path("slurm.conf"));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, told) = mpsc::channel();
        let reader =
            std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let (begin, mut found, mut last) = (Instant::now(), Vec::new(), false);
        while let Ok(line) = told.recv_timeout(migd_tests::LIMIT.saturating_sub(begin.elapsed())) {
            found.extend(line.split_once(words).map(|(_, rest)| rest.trim().to_owned()));
            last = line.contains("system device(s) detected");
            if last {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let _ = reader.join();
        assert!(last, "slurmd told of no GPU: {found:?}");
        found
    }
}

/// The value of a field of a line.
fn field(line: &str, name: &str) -> String {
    let found = line.split_whitespace().find_map(|word| word.strip_prefix(name));
    found.unwrap_or_else(|| panic!("no {name} in {line}")).to_owned()
}

fn files(line: &str) -> String {
    let short = |file: &str| file.trim_start_matches("/dev/").trim_start_matches("nvidia-caps/").to_owned();
    field(line, "File=").split(',').map(short).collect::<Vec<_>>().join(",")
}

#[test]
fn lists_the_mig_devices_of_an_a100_with_their_files() {
    let slurm = Slurm::new("1xa100-40gb", "gpu:nvidia_a100_3g.20gb:1,gpu:nvidia_a100_1g.5gb:2")
        .set(0, "3g@0 1g@4 1g@5");
    let expected = [
        "nvidia_a100_1g.5gb nvidia0,nvidia-cap102,nvidia-cap103",
        "nvidia_a100_1g.5gb nvidia0,nvidia-cap111,nvidia-cap112",
        "nvidia_a100_3g.20gb nvidia0,nvidia-cap12,nvidia-cap13",
    ];
    assert_eq!(slurm.gres(), expected);
    // The same by its daemon's log, with what a job gets to see.
    let uuids: Vec<String> = slurm
        .0
        .simulate("run", &["--", "nvidia-smi", "-L"])
        .expect(0)
        .out
        .lines()
        .filter_map(|line| Some(line.split_once("(UUID: MIG-")?.1.trim_end_matches(')').to_owned()))
        .collect();
    assert_eq!(uuids.len(), 3);
    let ids: Vec<String> = uuids.iter().map(|uuid| format!("MIG-{uuid}")).collect();
    assert_eq!(slurm.detected("UniqueID: "), ids);
}

#[test]
fn an_h100s_types_keep_its_whole_name_and_collapse_media_and_compute_slices() {
    let types = "gpu:nvidia_h100_80gb_hbm3_3g.40gb:1,gpu:nvidia_h100_80gb_hbm3_1g.10gb:2";
    let slurm = Slurm::new("1xh100-sxm-80gb", types).set(0, "1g+me@0 1g@1 3g@4[1c]");
    assert_eq!(
        slurm.gres(),
        [
            "nvidia_h100_80gb_hbm3_1g.10gb nvidia0,nvidia-cap66,nvidia-cap67",
            "nvidia_h100_80gb_hbm3_1g.10gb nvidia0,nvidia-cap75,nvidia-cap76",
            "nvidia_h100_80gb_hbm3_3g.40gb nvidia0,nvidia-cap21,nvidia-cap22",
        ]
    );
}

#[test]
fn a_type_is_computed_from_memory_and_so_may_not_be_the_profiles_name() {
    // Until 23.02.5: slices and rounded GiB. A 7g.40gb has 40192 MiB.
    let slurm = Slurm::new("1xa100-40gb", "gpu:nvidia_a100_7g.39gb:1").set(0, "7g@0");
    assert_eq!(slurm.gres(), ["nvidia_a100_7g.39gb nvidia0,nvidia-cap3,nvidia-cap4"]);
}

#[test]
fn a_mixed_node_lists_slices_and_whole_gpus() {
    let types = "gpu:nvidia_a100_4g.20gb:1,gpu:nvidia_a100_3g.20gb:1,gpu:nvidia_a30_2g.12gb:2,gpu:tesla_t4:1";
    let slurm = Slurm::new("mixed", types).set(0, "4g@0 3g@4").set(1, "2g@0 2g@2");
    assert_eq!(
        slurm.gres(),
        [
            "nvidia_a100_3g.20gb nvidia0,nvidia-cap21,nvidia-cap22",
            "nvidia_a100_4g.20gb nvidia0,nvidia-cap12,nvidia-cap13",
            "nvidia_a30_2g.12gb nvidia1,nvidia-cap147,nvidia-cap148",
            "nvidia_a30_2g.12gb nvidia1,nvidia-cap156,nvidia-cap157",
            "tesla_t4 nvidia2",
        ]
    );
}

#[test]
fn a_minor_that_is_not_the_index_names_the_files() {
    let lab =
        Lab::described("gpus: [{gpu: a100-40gb, pci: '0000:07:00.0', minor: 5}, {gpu: a100-40gb, minor: 0}]");
    let slurm = Slurm::on(lab, "gpu:nvidia_a100_3g.20gb:1,gpu:nvidia_a100-sxm4-40gb:1").set(0, "3g@0");
    assert_eq!(
        slurm.gres(),
        ["nvidia_a100-sxm4-40gb nvidia0", "nvidia_a100_3g.20gb nvidia5,nvidia-cap687,nvidia-cap688"]
    );
}

#[test]
fn a_whole_gpu_whose_name_has_no_dash_is_taken_from_the_slices() {
    // Slurm's own trap: the type of the whole GPU is part of every slice's, so with one slice more than was
    // declared the "whole H100" that a job gets is a slice.
    let types = "gpu:nvidia_h100_80gb_hbm3_1g.10gb:2,gpu:nvidia_h100_80gb_hbm3:1";
    let slurm = Slurm::new("2xh100-sxm-80gb", types).set(0, "1g@0 1g@1 1g@2");
    assert_eq!(
        slurm.gres(),
        [
            "nvidia_h100_80gb_hbm3 nvidia0,nvidia-cap84,nvidia-cap85",
            "nvidia_h100_80gb_hbm3_1g.10gb nvidia0,nvidia-cap66,nvidia-cap67",
            "nvidia_h100_80gb_hbm3_1g.10gb nvidia0,nvidia-cap75,nvidia-cap76",
        ]
    );
}

#[test]
fn behind_a_gap_in_the_indexes_nothing_is_seen() {
    // Slurm takes indexes to be contiguous, and stops at the first that is empty.
    let slurm = Slurm::new("1xa100-40gb", "gpu:nvidia_a100_1g.5gb:3").set(0, "1g@0 1g@1 1g@2");
    assert_eq!(slurm.gres().len(), 3);
    slurm.0.simulate("fault", &["add", "fn=nvmlDeviceGetMigDeviceHandleByIndex gap=1"]).expect(0);
    assert_eq!(slurm.gres(), ["nvidia_a100_1g.5gb nvidia0,nvidia-cap66,nvidia-cap67"]);
    slurm.0.simulate("fault", &["add", "fn=nvmlDeviceGetMigDeviceHandleByIndex gap=0"]).expect(0);
    let ended = slurm.slurmd(&["-G"]);
    assert!(ended.err.contains("no MIG devices were found"), "{}", ended.err);
}

#[test]
fn mig_without_an_instance_ends_slurmd() {
    let slurm = Slurm::new("1xa100-40gb", "gpu:1").set(0, "on");
    let ended = slurm.slurmd(&["-G"]);
    assert_ne!(ended.status.code(), Some(0));
    assert!(
        ended.err.contains("fatal:")
            && ended.err.contains("MIG mode is enabled, but no MIG devices were found"),
        "{}",
        ended.err
    );
}

#[test]
fn an_old_driver_has_the_older_form_of_uuids() {
    let of = |driver: &str| {
        let lab = Lab::described(&format!("driver: {driver}\ngpus: [{{gpu: a100-40gb}}]"));
        let slurm = Slurm::on(lab, "gpu:nvidia_a100_3g.20gb:1").set(0, "3g@0");
        (
            slurm.0.status()["gpus"][0]["uuid"].as_str().unwrap().to_owned(),
            slurm.gres(),
            slurm.detected("UniqueID: "),
        )
    };
    let (gpu, gres, ids) = of("460.32.03");
    assert_eq!(gres, ["nvidia_a100_3g.20gb nvidia0,nvidia-cap12,nvidia-cap13"]);
    assert_eq!(ids, [format!("MIG-{gpu}/1/0")]);
    let (_, gres, ids) = of("470.57.02");
    assert_eq!(gres, ["nvidia_a100_3g.20gb nvidia0,nvidia-cap12,nvidia-cap13"]);
    assert!(ids[0].starts_with("MIG-") && !ids[0].contains('/'), "{ids:?}");
}

#[test]
fn whole_gpus_have_the_links_that_join_them() {
    let lab = Lab::described("gpus: [{gpu: a30-24gb, count: 3}]\nnvlink: [{gpus: [0, 1], links: 4}]");
    let slurm = Slurm::on(lab, "gpu:nvidia_a30:3");
    let mut links: Vec<String> =
        slurm.lines().iter().map(|line| files(line) + " " + &field(line, "Links=")).collect();
    links.sort();
    assert_eq!(links, ["nvidia0 -1,4,0", "nvidia1 4,-1,0", "nvidia2 0,0,-1"]);
}
