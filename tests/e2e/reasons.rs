//! Every reason code is explained where the messages send the reader.

use migd_tests::root;

#[test]
fn every_reason_has_its_section_with_its_exit_code() {
    let page = std::fs::read_to_string(root().join("docs/reasons.md")).unwrap();
    let source = std::fs::read_to_string(root().join("src/core/src/reason.rs")).unwrap();
    let codes = [
        "Invalid",
        "Blocked",
        "NeedsReset",
        "RolledBack",
        "NotRolledBack",
        "Unavailable",
        "Denied",
        "Cancelled",
        "Failed",
    ];
    let numbers = [3, 4, 5, 6, 7, 8, 9, 10, 1];
    let mut seen = 0;
    for line in source.lines().filter(|line| line.contains("\" => ")) {
        let code = line.split('"').nth(1).unwrap();
        let exit = line.rsplit("=> ").next().unwrap().trim_end_matches(',');
        let number = numbers[codes.iter().position(|c| *c == exit).unwrap()];
        // The number stands in the section's own heading or in that of its chapter.
        let at = page.find(&format!("\n### {code}")).unwrap_or_else(|| panic!("no section for {code}"));
        let heading = page[at + 1..].lines().next().unwrap();
        let chapter = page[..at].rsplit("\n## ").next().unwrap().lines().next().unwrap();
        let tag = format!("({number})");
        assert!(
            heading.ends_with(&tag) || chapter.ends_with(&tag),
            "{code}: {number} is neither in '{heading}' nor '{chapter}'"
        );
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    assert_eq!(page.matches("\n### ").count(), seen, "a section for a code that does not exist");
}
