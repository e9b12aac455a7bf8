use super::*;
use crate::{fixture, notation};
use rstest::rstest;

/// A node file's boards with their information.
fn node(text: &str) -> (Info, Vec<Model>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.yaml");
    std::fs::write(&path, text).unwrap();
    let (info, gpus) = notation::parse(path.to_str().unwrap()).unwrap().make().unwrap();
    (info, gpus.into_iter().map(|(model, _)| model).collect())
}

fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.yaml");
    std::fs::write(&path, text).unwrap();
    let made = notation::parse(path.to_str().unwrap()).and_then(|description| description.make().map(|_| ()));
    made.unwrap_err().to_string()
}

#[rstest]
#[case::same("0/1", "0/1", 10)]
#[case::below_the_same("0/1/0", "0/1/1", 20)]
#[case::one_below_the_other("0/1", "0/1/1", 20)]
#[case::other_switch("0/1", "0/2", 30)]
#[case::bridge_alone("0", "0", 30)]
#[case::other_bridge("0/1", "1/1", 40)]
fn the_common_ancestor_follows_from_the_places_on_pcie(
    #[case] one: &str,
    #[case] other: &str,
    #[case] expected: u32,
) {
    let (_, models) = node(&format!(
        "gpus: [{{gpu: a30-24gb, numa: 0, pcie: '{one}'}}, {{gpu: a30-24gb, numa: 0, pcie: '{other}'}}]"
    ));
    let [a, b] = models.as_slice() else { panic!() };
    assert_eq!([level((0, a), (1, b)), level((1, b), (0, a))], [expected, expected]);
    assert_eq!(level((0, a), (0, a)), 0);
}

#[test]
fn without_a_place_on_pcie_numa_nodes_tell() {
    let (_, models) = node("gpus: [{gpu: a30-24gb, count: 3}]");
    let at = |gpu: usize| (gpu, &models[gpu]);
    assert_eq!([level(at(0), at(1)), level(at(1), at(2))], [40, 50]);
}

#[rstest]
#[case::ampere("a100-80gb", "running", vec![2])]
#[case::ampere_without("a100-80gb", "stopped", vec![0, 1, 2])]
#[case::hopper_without("h100-sxm-80gb", "stopped", vec![2])]
fn a_reset_takes_others_with_it_on_ampere_without_fabric_manager(
    #[case] key: &str,
    #[case] fabric: &str,
    #[case] expected: Vec<usize>,
) {
    let (info, models) = node(&format!(
        "nvswitch: true\nfabric: {fabric}\ngpus: [{{gpu: {key}, count: 3}}, {{gpu: t4-16gb}}]"
    ));
    assert_eq!(reset_group(&info, &models, 2), expected);
    assert_eq!(reset_group(&info, &models, 3), [3], "no NVLink");
}

#[test]
fn links_lead_to_the_switches_in_turn_or_to_the_peer_that_is_said() {
    let (_, models) = node("nvswitch: true\ngpus: [{gpu: a100-80gb}, {gpu: a100-80gb, links: 10}]");
    let ends: Vec<End> = models[0].link_ends().collect();
    assert_eq!(ends, (0..12).map(|link| End::Switch(link % 6)).collect::<Vec<_>>());
    assert_eq!((models[1].links, models[1].link_end(10)), (10, None));
    let (_, models) = node("gpus: [{gpu: a30-24gb, count: 3}]\nnvlink: [{gpus: [0, 2], links: 4}]");
    assert_eq!(models[0].link_ends().collect::<Vec<_>>(), [End::Gpu(2); 4]);
    assert_eq!(models[2].link_ends().collect::<Vec<_>>(), [End::Gpu(0); 4]);
    assert_eq!(models[1].link_ends().count(), 0);
}

#[test]
fn mig_takes_a_gpu_off_nvlink() {
    let (info, models) = node("gpus: [{gpu: a30-24gb, count: 2}]\nnvlink: [{gpus: [0, 1], links: 4}]");
    let boards = [Board::new(&info, &models[0]), Board::new(&info, &models[1])];
    let (off, on) = (fixture::fresh(), fixture::mig_on());
    assert!(
        boards[0].link_active(&off, 3) && !boards[0].link_active(&on, 3) && !boards[0].link_active(&off, 4)
    );
    let reaches = |far: &GpuState, way| reaches((0, &boards[0], &off), (1, &boards[1], far), way);
    assert!(reaches(&off, Way::NvLink) && reaches(&off, Way::Pcie));
    assert!(!reaches(&on, Way::NvLink) && !reaches(&on, Way::Any));
}

#[test]
fn switched_links_of_ampere_need_fabric_manager() {
    for (key, up) in [("a100-80gb", false), ("h100-sxm-80gb", true)] {
        let (info, models) =
            node(&format!("nvswitch: true\nfabric: stopped\ngpus: [{{gpu: {key}, count: 2}}]"));
        let boards = [Board::new(&info, &models[0]), Board::new(&info, &models[1])];
        let state = fixture::fresh();
        assert_eq!(boards[0].link_active(&state, 0), up, "{key}");
        assert!(!reaches((0, &boards[0], &state), (1, &boards[1], &state), Way::NvLink), "{key}");
    }
}

#[test]
fn without_fabric_manager_amperes_mode_waits_for_a_reset() {
    let (info, models) = node("nvswitch: true\nfabric: stopped\ngpus: [{gpu: a100-80gb, count: 2}]");
    let mut state = fixture::fresh();
    let activation = Board::new(&info, &models[0]).set_mode(&mut state, 1, false);
    assert_eq!(activation, Ok(crate::machine::Code::RESET_REQUIRED));
    assert_eq!((state.mig_current, state.mig_pending), (0, 1));
}

#[rstest]
#[case("fabric: stopped\ngpus: [{gpu: a30-24gb}]", "1:9: fabric is Fabric Manager's")]
#[case("nvswitch: true\nfabric: off\ngpus: [{gpu: a30-24gb}]", "legal are running and stopped")]
#[case("gpus: [{gpu: a30-24gb}]\nnvlink: [{gpus: [0, 1], links: 4}]", "gpus [0, 1]; legal are two of 0 to 0")]
#[case(
    "gpus: [{gpu: a30-24gb, count: 2}]\nnvlink: [{gpus: [0, 1], links: 5}]",
    "GPU 0: 5 NVLinks; NVIDIA A30 has 4"
)]
#[case("nvswitch: true\ngpus: [{gpu: a30-24gb, links: 5}]", "GPU 0: 5 NVLinks; NVIDIA A30 has 4")]
#[case("gpus: [{gpu: a30-24gb, cpus: '0-x'}]", "they are written 0-15,32-47")]
#[case("gpus: [{gpu: a30-24gb, pcie: '0/1/2/3/4'}]", "4 numbers at most")]
#[case("gpus: [{gpu: a30-24gb}]\ncluster: 12", "UUID of 32 hex digits")]
fn what_cannot_be_wired_is_refused_with_its_place(#[case] text: &str, #[case] says: &str) {
    let refused = refusal(text);
    assert!(refused.contains(says), "{refused}");
}

#[test]
fn cpus_are_written_as_they_are_read() {
    for text in ["0-3,6", "0", "1,3,5-7"] {
        assert_eq!(write_cpus(&parse_cpus(text)), text);
    }
    let (_, models) = node("gpus: [{gpu: a30-24gb, cpus: '0-3,64'}, {gpu: a30-24gb}]");
    assert_eq!(models[0].cpus(), Some(vec![0, 1, 2, 3, 64]));
    assert_eq!(models[1].cpus(), None);
}
