//! The way from one GPU to another: read by NVIDIA's own binding, as the node file says it, and felt by resets.

use migd_tests::Lab;
use serde_json::{Value, json};

const NOT_SUPPORTED: u32 = 3;
const INVALID_ARGUMENT: u32 = 2;

fn read(lab: &Lab) -> Value {
    lab.python("topology.py", &[]).expect(0).json()
}

fn described(text: &str) -> (Lab, Value) {
    let lab = Lab::described(text);
    let said = read(&lab);
    (lab, said)
}

#[test]
fn nvswitch_joins_all_gpus_by_all_links() {
    let (_, said) = described("nvswitch: true\ngpus: [{gpu: a100-80gb, count: 4}]");
    for links in said["links"].as_array().unwrap() {
        for (number, link) in links.as_array().unwrap().iter().enumerate() {
            if number >= 12 {
                assert_eq!(*link, json!({"error": INVALID_ARGUMENT}));
                continue;
            }
            assert_eq!([&link["active"], &link["kind"], &link["p2p"]], [1, 2, 1]);
            assert_eq!(link["to"], format!("00000000:F{}:00.0", number % 6));
        }
    }
    assert_eq!(
        said["p2p"],
        json!([[[0; 5]; 3]; 4].map(|gpu| gpu.map(|ways| ways.to_vec()).to_vec()).to_vec())
    );
    assert_eq!(said["switched"], json!([12, 12, 12, 12]));
    // Ampere knows of no fabric.
    assert_eq!(said["fabric"], json!(vec![json!({"error": NOT_SUPPORTED}); 4]));
    assert_eq!(said["fabric1"], json!(vec![json!({"error": NOT_SUPPORTED}); 4]));
}

#[test]
fn direct_links_and_places_read_as_described() {
    let (lab, said) = described(
        "gpus:\n  - {gpu: a30-24gb, numa: 0, pcie: 0/0, cpus: '0'}\n  - {gpu: a30-24gb, numa: 0, pcie: 0/0, cpus: '0'}\n  \
         - {gpu: a30-24gb, numa: 1, pcie: 1/0, cpus: '1,64-66'}\nnvlink: [{gpus: [0, 1], links: 4}]",
    );
    for (gpu, peer) in [(0, 1), (1, 0)] {
        for link in 0..4 {
            assert_eq!(said["links"][gpu][link], json!({"active": 1, "kind": 0, "to": peer, "p2p": 1}));
        }
    }
    assert_eq!(said["links"][2][0]["active"], 0);
    assert_eq!(said["switched"], json!([0, 0, 0]));
    assert_eq!(said["links"][2][0]["to"], json!({"error": NOT_SUPPORTED}));
    assert_eq!(said["levels"], json!([[0, 10, 50], [10, 0, 50], [50, 50, 0]]));
    assert_eq!(said["nearest"][0], json!({"10": [1], "20": [], "30": [], "40": [], "50": [2]}));
    // Read, write, NVLink, atomics, PCIe.
    assert_eq!(said["p2p"][0], json!([[0, 0, 0, 0, 0], [0, 0, 5, 5, 0]]));
    assert_eq!(said["cpus"], json!([[0], [0], [1, 64, 65, 66]]));
    assert_eq!(said["scoped"], said["cpus"]);
    assert_eq!(said["memory"], json!([[0], [0], [1]]));
    assert_eq!(said["cpu0"], json!([0, 1]));
    lab.simulate("set", &["1", "1g@0"]).expect(0);
    let said = read(&lab);
    assert_eq!(said["links"][1][0]["active"], 0, "MIG takes a GPU off NVLink");
    assert_eq!(said["p2p"][0], json!([[5, 5, 5, 5, 5], [0, 0, 5, 5, 0]]));
}

#[test]
fn a_fabric_is_joined_once_fabric_manager_runs() {
    let cluster = "0123456789abcdef0123456789abcdef";
    let node = |fabric: &str| {
        format!(
            "nvswitch: true\nfabric: {fabric}\ncluster: {cluster}\nclique: 7\ngpus: [{{gpu: h100-sxm-80gb, count: 2}}]"
        )
    };
    let (lab, said) = described(&node("running"));
    let joined = json!({"state": 3, "clique": 7, "cluster": cluster, "health": 0x1aa, "summary": 1});
    let apart = |state: u32| json!({"state": state, "clique": 0, "cluster": "0".repeat(32), "health": 0, "summary": 0});
    assert_eq!(said["fabric"], json!([joined, joined]));
    assert_eq!(said["fabric1"], json!([0, 0]));
    lab.simulate("set", &["0", "on"]).expect(0);
    assert_eq!(read(&lab)["fabric"], json!([apart(1), joined]));
    assert_eq!(described(&node("stopped")).1["fabric"], json!([apart(1), apart(1)]));
    assert_eq!(described("gpus: [{gpu: h100-pcie-80gb}]").1["fabric"], json!([apart(0)]));
}

#[test]
fn ampere_without_fabric_manager_is_reset_all_together_or_not_at_all() {
    let lab = Lab::described("nvswitch: true\nfabric: stopped\ngpus: [{gpu: a100-80gb, count: 3}]");
    lab.simulate("set", &["1", "1g@0"]).expect(0);
    let refused = lab.simulate("run", &["--", "nvidia-smi", "-r", "-i", "1"]).expect(255);
    assert!(refused.out.contains("Fabric Manager is not running"), "{}", refused.out);
    assert!(refused.out.contains("00000000:07:00.0, 00000000:47:00.0"), "{}", refused.out);
    assert_eq!(lab.holds(1), "1g.10gb@0");
    lab.simulate("run", &["--", "nvidia-smi", "-r", "-i", "0,1,2"]).expect(0);
    assert_eq!(lab.holds(1), "");
    let alone = Lab::described("nvswitch: true\ngpus: [{gpu: a100-80gb, count: 3}]");
    alone.simulate("run", &["--", "nvidia-smi", "-r", "-i", "1"]).expect(0);
}

#[test]
fn switches_are_devices_of_the_nodes_tree() {
    let lab = Lab::new("dgx-a100");
    let listed = "ls /dev | grep nvswitch | tr '\\n' ' '; grep -c nvswitch /proc/devices; cat /sys/bus/pci/devices/*/class | sort | uniq -c";
    let said = lab.simulate("run", &["--tree", "--", "sh", "-c", listed]).expect(0).out;
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words.len(), 7 + 1 + 4, "{said}");
    assert!(words.starts_with(&["nvidia-nvswitch0"]) && words[6] == "nvidia-nvswitchctl", "{said}");
    assert_eq!(words[7..], ["1", "8", "0x030200", "6", "0x068000"]);
}
