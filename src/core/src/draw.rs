//! GPUs drawn to scale in slices, in plain ASCII.

use crate::{node::Node, plan::Plan};

/// What `status` prints.
pub fn status(_node: &Node) -> String {
    String::new()
}

/// What `plan` prints: each GPU that changes as it is and as it will be, what happens to each instance, and
/// the totals.
pub fn plan(_plan: &Plan, _node: &Node) -> String {
    String::new()
}
