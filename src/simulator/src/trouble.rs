//! What goes wrong in the programs, and the exit code that says whose fault it is.

use crate::shared::{Locked, StateError};
use std::{fmt::Display, io, path::Path};

/// Why a command cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What was asked for is not legal; the message says what is.
    #[error("{0}")]
    Input(String),
    /// It was legal and did not work.
    #[error("{0}")]
    Failed(String),
}

impl Trouble {
    /// An illegal request.
    pub fn input(message: impl Into<String>) -> Trouble {
        Trouble::Input(message.into())
    }

    /// A failed system call on a path.
    pub fn io(what: &str, path: &Path, error: &io::Error) -> Trouble {
        Trouble::Failed(format!("cannot {what} {}: {error}", path.display()))
    }

    /// The program's exit code: 3 for input, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Trouble::Input(_) => 3,
            Trouble::Failed(_) => 1,
        }
    }
}

impl From<StateError> for Trouble {
    fn from(error: StateError) -> Trouble {
        match error {
            StateError::Foreign { .. } => Trouble::Input(error.to_string()),
            StateError::Io { .. } => Trouble::Failed(error.to_string()),
        }
    }
}

impl From<Locked> for Trouble {
    fn from(error: Locked) -> Trouble {
        Trouble::Failed(error.to_string())
    }
}

/// `; did you mean NAME?` with the nearest of `names`, or nothing if none is near.
pub fn did_you_mean<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(asked, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

/// Joins with a separator.
pub(crate) fn join<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}
