//! What an apply costs in driver calls.

use migd_tests::{Lab, mutating};
use serde_json::Value;
use std::collections::BTreeMap;

/// The peer's no-op apply on the same node and layout: 669 calls and five Inits in one process.
const PEER: usize = 669;

#[test]
fn a_second_apply_reads_little_and_writes_nothing() {
    let lab = Lab::new("8xa100-40gb");
    lab.run(&["apply", "all-balanced"]).expect(0);
    lab.trace();
    let outcome = lab.run(&["apply", "all-balanced", "--json"]).expect(0).json();
    assert_eq!(
        (&outcome["totals"]["unchanged"], &outcome["totals"]["changed"]),
        (&Value::from(8), &Value::from(0))
    );
    let trace = lab.trace();
    assert_eq!(mutating(&trace), Vec::<&Value>::new());
    let mut inits: BTreeMap<u64, u32> = BTreeMap::new();
    for call in trace.iter().filter(|call| call["fn"].as_str().unwrap().starts_with("nvmlInit")) {
        *inits.entry(call["pid"].as_u64().unwrap()).or_default() += 1;
    }
    assert_eq!(inits.len(), 9, "a scout and eight workers");
    assert!(inits.values().all(|inits| *inits == 1), "{inits:?}");
    println!("second apply on 8 GPUs: {} driver calls; the peer: {PEER}", trace.len());
    assert!(trace.len() < PEER, "{} calls", trace.len());
}
