use super::*;

fn refusal(notation: &str) -> String {
    let trouble = parse(notation).unwrap_err();
    assert_eq!(trouble.exit_code(), 3, "{trouble}");
    trouble.to_string()
}

/// A node file with this text.
fn file(text: &str) -> Result<Description, Trouble> {
    super::file::parse(text, "node.yaml", "node", "node.yaml")
}

#[test]
fn every_key_of_the_table_is_a_node_or_says_why_not() {
    for key in Gpus::keys() {
        let description = parse(&format!("2x{key}")).unwrap();
        assert_eq!(description.gpus.len(), 2);
        match description.make() {
            Ok((info, gpus)) => assert_eq!((info.gpu_count, gpus.len()), (info.gpu_count, 2)),
            Err(why) => assert!(why.to_string().contains(&key), "{why}"),
        }
    }
}

#[test]
fn every_named_node_can_be_made() {
    for (name, _) in NAMED {
        let (_, gpus) = parse(name).unwrap().make().unwrap();
        assert!(!gpus.is_empty(), "{name}");
    }
}

#[test]
fn gpus_stand_by_address_and_differ_in_all_that_identifies() {
    let (_, gpus) = parse("32xa30-24gb").unwrap().make().unwrap();
    let buses: Vec<u32> = gpus.iter().map(|(model, _)| model.bus).collect();
    assert!(buses.is_sorted());
    for of in [|m: &Model| m.uuid.as_str().to_owned(), |m: &Model| m.serial.as_str().to_owned()] {
        let mut all: Vec<String> = gpus.iter().map(|(model, _)| of(model)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 32);
    }
}

#[test]
fn the_same_description_is_the_same_node_and_another_is_not() {
    let identity = |text: &str| file(text).unwrap().identity();
    let one = identity("gpus: [{gpu: a100-40gb}]");
    assert_eq!(one, identity("# a comment\ngpus:\n  - gpu: a100-40gb\n"));
    assert_ne!(one, identity("gpus: [{gpu: a100-40gb, variant: B}]"));
    assert_ne!(one, identity("driver: 535.54.03\ngpus: [{gpu: a100-40gb}]"));
}

#[rstest::rstest]
#[case("8xa100-40g", "a100-40gb")]
#[case("dgx-a10", "dgx-a100")]
#[case("0xa100-40gb", "1 to 32")]
#[case("33xa100-40gb", "1 to 32")]
#[case("99999999999999999999xa100-40gb", "1 to 32")]
#[case("16xa100-40gb,17xa30-24gb", "33 GPUs")]
#[case("", "COUNTxGPU")]
#[case("a100-40gb,", "COUNTxGPU")]
#[case("-1xa100-40gb", "COUNTxGPU")]
#[case("./missing.yaml", "no node file")]
fn refuses_with_the_nearest_or_the_legal(#[case] notation: &str, #[case] says: &str) {
    let why = refusal(notation);
    assert!(why.contains(says), "{why}");
}

#[rstest::rstest]
#[case("gpus: [{gpu: a100-40g}]", "1:14", "a100-40gb")]
#[case("gpus: []", "", "0 GPUs")]
#[case("gpus: [{gpu: a100-40gb, minr: 1}]", "node.yaml:1:", "minor")]
#[case("driver: five\ngpus: [{gpu: a100-40gb}]", "1:9", "580.95.05")]
#[case("driver: 999.1\ngpus: [{gpu: a100-40gb}]", "", "CUDA")]
#[case("variant: C\ngpus: [{gpu: a100-40gb}]", "1:10", "A and B")]
#[case("gpus: [{gpu: a100-40gb, count: 0}]", "", "1 to 32")]
#[case("gpus: [{gpu: a100-40gb, count: 2, minor: 0}]", "", "name one GPU")]
#[case("gpus: [{gpu: a100-40gb, pci: '1:2'}]", "", "0000:07:00.0")]
#[case("gpus: [{gpu: a100-40gb, uuid: GPU-1}]", "", "8-4-4-4-12")]
#[case("gpus: [{gpu: a100-40gb, minor: 3}, {gpu: a100-40gb, minor: 3}]", "", "minor 3 is given twice")]
#[case("privileges: some\ngpus: [{gpu: a100-40gb}]", "1:13", "real and ignored")]
#[case("unknowns: {lost_fact: 1}\ngpus: [{gpu: a100-40gb}]", "", "lost_facts")]
#[case("gpus: [{gpu: a100-40gb}]\ngpus: []", "2:1", "")]
#[case("gpus: {", "node.yaml:", "")]
fn a_file_is_refused_at_its_place(#[case] text: &str, #[case] place: &str, #[case] says: &str) {
    let trouble = file(text).unwrap_err();
    let why = trouble.to_string();
    assert_eq!(trouble.exit_code(), 3, "{why}");
    assert!(why.contains(place) && why.contains(says), "{why}");
}

#[test]
fn mig_may_be_written_as_yaml_reads_it() {
    for (word, mode) in [("off", "off"), ("on", "on"), ("'1g@0* 3g@4'", "1g@0* 3g@4")] {
        let node = file(&format!("gpus: [{{gpu: a100-40gb, mig: {word}}}]")).unwrap();
        assert_eq!(node.gpus[0].mig, mode);
        let (_, gpus) = node.make().unwrap();
        assert_eq!(geometry::write(&gpus[0].0, &gpus[0].1), mode);
    }
}
