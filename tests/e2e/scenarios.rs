//! Commands and their output on simulated nodes, as written in tests/scenarios/*.md; they double as documentation.
//! Each file has its own nodes. `TRYCMD=overwrite` writes down what comes out now.

use migd_tests::{program, root};

#[test]
fn scenarios_come_out_as_written() {
    let folder = root().join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "md"));
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let nodes = tempfile::tempdir().unwrap();
        trycmd::TestCases::new()
            .register_bin("migctl", program("migctl"))
            .register_bin("python", migd_tests::python())
            .env("MIGD_LAYOUT_PATH", "")
            .env("XDG_RUNTIME_DIR", nodes.path().to_str().unwrap())
            .timeout(migd_tests::LIMIT)
            .case(file);
    }
}
