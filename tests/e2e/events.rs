//! Events across processes: raised by one program, told to others through NVIDIA's Python binding.

use migd_tests::{Ended, Lab, python, root};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

/// A program that has registered for XIDs on every GPU of the node.
fn waiter(lab: &Lab, words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = lab.simulator("run", &["--"]);
    let mut child = command
        .arg(python())
        .arg(root().join("tests/python/events.py"))
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "registered\n");
    (child, out)
}

fn rest(mut waiter: (Child, BufReader<std::process::ChildStdout>)) -> String {
    let mut text = String::new();
    waiter.1.read_to_string(&mut text).unwrap();
    assert!(waiter.0.wait().unwrap().success());
    text
}

#[test]
fn ten_thousand_xids_of_four_tellers_reach_two_waiters() {
    let lab = Lab::new("2xh100-sxm-80gb");
    lab.simulated("show", &[]).expect(0);
    let waiters = [waiter(&lab, &["count", "10000"]), waiter(&lab, &["count", "10000"])];
    let tellers: Vec<Child> = ["13", "31", "48", "79"]
        .iter()
        .map(|xid| lab.simulator("xid", &["0", xid, "--times", "2500"]).spawn().unwrap())
        .collect();
    for mut teller in tellers {
        assert!(teller.wait().unwrap().success());
    }
    for waiter in waiters {
        assert_eq!(rest(waiter), "13:2500 31:2500 48:2500 79:2500\n");
    }
}

#[test]
fn a_timeout_comes_neither_early_nor_by_spinning() {
    let lab = Lab::new("1xa100-40gb");
    for wanted in [0, 1, 700] {
        let text = rest(waiter(&lab, &["timeout", &wanted.to_string()]));
        let (took, worked) = text.trim().split_once(' ').unwrap();
        let (took, worked): (u64, u64) = (took.parse().unwrap(), worked.parse().unwrap());
        assert!(took >= wanted && took < wanted + 10_000, "{took} ms for {wanted}");
        assert!(worked <= 100, "{worked} ms of work in a wait of {wanted}");
    }
}

#[test]
fn a_waiter_or_a_teller_killed_leaves_nothing_stuck() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("show", &[]).expect(0);
    for _ in 0..5 {
        let (mut killed, _out) = waiter(&lab, &["forever"]);
        let mut teller = lab.simulator("xid", &["0", "62", "--times", "1000000"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
        killed.kill().unwrap();
        teller.kill().unwrap();
        killed.wait().unwrap();
        teller.wait().unwrap();
        let after = waiter(&lab, &["count", "1"]);
        lab.simulated("xid", &["0", "13"]).expect(0);
        assert_eq!(rest(after), "13:1\n");
    }
}

#[test]
fn an_xid_names_the_instance_it_came_from() {
    let lab = Lab::new("1xa100-40gb");
    lab.simulated("set", &["0", "3g@4 1g@0"]).expect(0);
    let after = waiter(&lab, &["count", "2"]);
    lab.simulated("xid", &["0/2", "31"]).expect(0);
    lab.simulated("xid", &["0/2/0", "31"]).expect(0);
    assert_eq!(rest(after), "31:2\n");
    let refused: Ended = lab.simulated("xid", &["0/5", "31"]).expect(3);
    assert!(refused.err.contains("no GPU instance `5`; there are 2, 7"), "{}", refused.err);
    lab.simulated("xid", &["0/2/9", "31"]).expect(3);
}
