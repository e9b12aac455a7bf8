use super::*;

/// The trace is opened once in a process, so this wants a process of its own, as nextest gives it.
#[test]
fn writes_a_line_for_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    // SAFETY: under nextest this is the only test in the process; otherwise the others do not read it.
    unsafe { std::env::set_var("NVML_SIMULATOR_TRACE", &path) };
    let node = Node::new(&[a100('A')]);
    let device = gpu(0);
    switch_on(device);
    let gi = created(device, 9, 4, 4);
    compute_created(gi, 2);
    assert_eq!(nvmlGpuInstanceDestroy(gi), 19);
    by_uuid("a \"quoted\" one").unwrap_err();
    drop(node);

    let Ok(text) = std::fs::read_to_string(&path) else {
        // Another test of the same process came first and ran without a trace.
        return;
    };
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |name: &str| lines.iter().find(|line| line["fn"] == name).unwrap();
    let create = find("nvmlDeviceCreateGpuInstanceWithPlacement");
    assert_eq!(create["pid"], std::process::id());
    assert_eq!(create["args"], serde_json::json!({"gpu": 0, "id": 9, "start": 4, "size": 4}));
    assert!(create["us"].is_number());
    let destroy = find("nvmlGpuInstanceDestroy");
    assert_eq!((destroy["result"].as_u64(), &destroy["args"]["gi"]), (Some(19), &serde_json::json!(2)));
    assert_eq!(find("nvmlDeviceGetHandleByUUID")["args"]["uuid"], "a \"quoted\" one");
    assert_eq!(find("nvmlDeviceSetMigMode")["args"], serde_json::json!({"gpu": 0, "mode": 1}));
    assert_eq!(lines.iter().filter(|line| line["fn"] == "nvmlShutdown").count(), 2);
}
