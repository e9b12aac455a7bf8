use super::*;
use crate::fixture;
use proptest::prelude::*;

/// What the state is after `text` on an A100, or why it is not legal.
fn read(text: &str) -> Result<String, String> {
    let model = fixture::a100('A');
    let state = parse(&fixture::board(&model), text, &blank()).map_err(|e| e.to_string())?;
    Ok(write(&model, &state))
}

#[rstest::rstest]
#[case("off", "off")]
#[case("off*", "off*")]
#[case(" on ", "on")]
#[case("on*", "on*")]
#[case("1g@0* 1g@1 2g@2 3g@4", "1g@0* 1g@1 2g@2 3g@4")]
#[case("3g@4 1g.5gb@0", "1g@0 3g@4")]
#[case("1g+me@3", "1g+me@3")]
#[case("1g.10gb@6", "1g.10gb@6")]
#[case("3g@4[]", "3g@4[]")]
#[case("3g@4[]*", "3g@4[]*")]
#[case("3g@4[3c]", "3g@4")]
fn reads_and_writes(#[case] text: &str, #[case] written: &str) {
    assert_eq!(read(text).as_deref(), Ok(written));
}

#[rstest::rstest]
#[case("", "no geometry")]
#[case("1g", "PROFILE@START")]
#[case("1g@x", "PROFILE@START")]
#[case("on 1g@0", "stands alone")]
#[case("9g@0", "no profile `9g`")]
#[case("1c.3g@4", "in brackets")]
#[case("3g@1", "its starts are 0 4")]
#[case("3g@0 4g@0", "overlaps 3g")]
#[case("1g+me@0 1g+me@1", "at most 1")]
#[case("4g@0 3g@4[9c]", "holds no compute instance")]
#[case("3g@4[1c", "[ without its ]")]
#[case("3g@4]", "[ without its ]")]
#[case("3g@4[1c]*", "the * goes on the compute instance")]
#[case("7g@0 1g@6", "overlaps 7g")]
fn refuses_with_what_is_legal(#[case] text: &str, #[case] says: &str) {
    let why = read(text).unwrap_err();
    assert!(why.contains(says), "{text}: {why}");
}

#[test]
fn a_gpu_without_mig_takes_only_off() {
    let model = fixture::geforce();
    let board = fixture::board(&model);
    assert!(parse(&board, "off*", &blank()).is_ok());
    let why = parse(&board, "on", &blank()).unwrap_err().to_string();
    assert!(why.contains("has no MIG; legal are off and off*"), "{why}");
}

#[test]
fn handles_count_on_when_a_gpu_is_cut_anew() {
    let model = fixture::a100('A');
    let board = fixture::board(&model);
    let first = parse(&board, "7g@0", &blank()).unwrap();
    let second = parse(&board, "7g@0", &first).unwrap();
    let handle = |state: &GpuState| state.live_gis().next().unwrap().1.handle;
    assert_ne!(handle(&first), handle(&second));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-z@*.+\\[\\], ]{0,24}") {
        let model = fixture::a100('B');
        let board = fixture::board(&model);
        if let Ok(state) = parse(&board, &text, &blank()) {
            let again = parse(&board, &write(&model, &state), &blank()).unwrap();
            prop_assert_eq!(write(&model, &again), write(&model, &state));
        }
    }
}
