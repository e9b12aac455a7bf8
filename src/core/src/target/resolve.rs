use super::Target;
use crate::{diagnostic::Diagnostic, layout::Layout, node::Node};

/// Finds what `layout` wants of each GPU of `node`.
///
/// # Errors
/// Every fault: `index-out-of-range`, `mig-unsupported`, `profile-unknown` (once for each name and group of
/// like GPUs), `no-gpu-matched`.
pub fn resolve(layout: &Layout, _node: &Node) -> Result<Target, Vec<Diagnostic>> {
    Ok(Target {
        layout: layout.name.clone(),
        gpus: vec![],
        blocked: vec![],
        untouched: vec![],
        notes: vec![],
    })
}
