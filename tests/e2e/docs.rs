//! The examples of docs/layouts.md: files are right, commands answer as written. `TRYCMD=overwrite` writes down what
//! comes out now.

use migd_tests::{program, root, run};
use std::{fs, process::Command};

/// What stands in backquotes at the beginning of the rows of the table with this head.
fn cells(page: &str, head: &str) -> Vec<String> {
    let table = page.split(&format!("| {head} |")).nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_row_of_the_layouts_page_s_tables_is_right() {
    let page = fs::read_to_string(root().join("docs/layouts.md")).unwrap();
    let (instances, matches) = (cells(&page, "`instances:`"), cells(&page, "key"));
    assert!(instances.len() > 9 && matches.len() > 5, "{instances:?} {matches:?}");
    let mut text = "layouts:\n".to_owned();
    for (at, instances) in instances.iter().enumerate() {
        text += &format!("  wish-{at}: {{gpus: [{{match: all, instances: {instances}}}]}}\n");
    }
    for (at, key) in matches.iter().enumerate() {
        text += &format!("  match-{at}: {{gpus: [{{match: {{{key}}}, mig: off}}]}}\n");
    }
    let lab = tempfile::tempdir().unwrap();
    let file = lab.path().join("t.yaml");
    fs::write(&file, text).unwrap();
    let told = run(Command::new(program("migctl")).arg("check").arg(&file).args(["--for", "2xa100-40gb"]));
    // All can be had there but for the GPU whose UUID stands for any.
    let refused: Vec<&str> = told.out.lines().filter(|line| line.contains("cannot be placed")).collect();
    assert_eq!(refused.len(), 1, "{told:?}");
}

/// The files of a page: each ```yaml block, by the name in its first line.
fn files(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```yaml\n").skip(1);
    blocks
        .enumerate()
        .map(|(at, block)| {
            let text = block.split("```").next().unwrap().to_owned();
            let first = text.lines().next().unwrap().trim_start_matches("# ");
            let named = first.ends_with(".yaml");
            (if named { first.to_owned() } else { format!("example-{at}.yaml") }, text)
        })
        .collect()
}

#[test]
fn the_layouts_page_is_true() {
    let path = root().join("docs/layouts.md");
    let page = fs::read_to_string(&path).unwrap();
    let files = files(&page);
    assert!(files.len() >= 4, "{files:?}");
    let lab = tempfile::tempdir().unwrap();
    let folder = lab.path().join("layouts.in");
    fs::create_dir(&folder).unwrap();
    for (name, text) in &files {
        fs::write(folder.join(name), text).unwrap();
        run(Command::new(program("migctl")).arg("check").arg(folder.join(name))).expect(0);
    }
    fs::write(
        folder.join("wrong.yaml"),
        "layouts:\n  one:\n    gpus:\n      - match: all\n        instanecs: balanced\n",
    )
    .unwrap();
    let small = "layouts: {two-and-two: {gpus: [{match: all, instances: [2g, 2x 1g]}]}}\n";
    fs::write(folder.join("small.yaml"), small).unwrap();
    let copy = lab.path().join("layouts.md");
    fs::write(&copy, &page).unwrap();
    trycmd::TestCases::new()
        .register_bin("migctl", program("migctl"))
        .env("MIGD_LAYOUT_PATH", "")
        .env("XDG_RUNTIME_DIR", lab.path().to_str().unwrap())
        .timeout(migd_tests::LIMIT)
        .case(&copy)
        .run();
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        fs::copy(copy, path).unwrap();
    }
}
