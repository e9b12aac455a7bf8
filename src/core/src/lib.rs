//! The pure half of migd: what a MIG node is, what a layout means, and what must be done to get there.
//!
//! ```text
//! layout file --layout::parse--> LayoutFile --target::resolve(Node)--> Target --plan::make(Node)--> Plan
//! ```
//!
//! Nothing here does I/O, reads a clock, starts a thread or holds global state: the same input gives the
//! same bytes. The driver's answers arrive as one [`node::Node`]; what is decided leaves as one plan.
#![forbid(unsafe_code)]

pub mod check;
pub mod choose;
pub mod compose;
pub mod diagnostic;
pub mod document;
pub mod draw;
pub mod explain;
#[cfg(test)]
mod fixtures;
pub mod geometry;
pub mod id;
pub mod imagined;
pub mod layout;
pub mod near;
pub mod node;
pub mod plan;
pub mod profile;
pub mod reason;
pub mod render;
pub mod table;
pub mod target;
