use super::Plan;
use crate::{diagnostic::Diagnostic, node::Node, reason::Reason, target::Target};

/// What the caller allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {}

/// Finds the cheapest way from `node` to `target`.
///
/// # Errors
/// Every refusal, each with its GPU: `layout-unplaceable` where the GPU can never hold what is wanted,
/// `instance-in-use` and `pinned-unplaceable` where only instances in use prevent it.
pub fn make(_node: &Node, _target: &Target, _policy: &Policy) -> Result<Plan, Vec<Diagnostic>> {
    Err(vec![Diagnostic::error(Reason::Internal, "planning is not there yet")])
}
