//! Where a layout's text comes from: the caller's file, or the layouts that migd ships.

use migd_core::{document::Failure, layout, layout::LayoutFile};

/// The layouts that come with migd, right for every GPU of the table.
const SHIPPED: &str = include_str!("../../../profiles/layouts.yaml");

/// A layout file's text with the name to show for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutText {
    /// The file as the caller named it.
    pub origin: String,
    /// What stands in it.
    pub text: String,
}

impl LayoutText {
    /// The layouts that come with migd.
    pub fn shipped() -> LayoutText {
        LayoutText { origin: "<shipped layouts>".to_owned(), text: SHIPPED.to_owned() }
    }

    /// Reads the text.
    ///
    /// # Errors
    /// All faults in it at once, also those of layouts that nobody asked for.
    pub fn parse(&self) -> Result<LayoutFile, Failure> {
        layout::parse(&self.text, &self.origin).map_err(Failure::of)
    }
}
