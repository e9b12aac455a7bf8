//! One fault, warning or note as a person and a program are told it: what, where, why and what to do.

use crate::reason::Reason;
use serde::{Deserialize, Serialize};

/// How grave a [`Diagnostic`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The request cannot go on.
    Error,
    /// It can, and probably is not what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

/// A place in a text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file as the caller named it; `<stdin>` for standard input.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The reason code.
    pub reason: Reason,
    /// How grave it is.
    pub severity: Severity,
    /// One sentence for people, without the place.
    pub message: String,
    /// Where in which file, if it stands in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The GPU concerned, by NVML index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// What was probably meant, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// What is allowed here, or what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with nothing but its sentence.
    pub fn error(reason: Reason, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            reason,
            severity: Severity::Error,
            message: message.into(),
            place: None,
            gpu: None,
            near: Vec::new(),
            help: None,
        }
    }

    /// A warning with nothing but its sentence.
    pub fn warning(reason: Reason, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(reason, message) }
    }

    /// A note with nothing but its sentence.
    pub fn note(reason: Reason, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(reason, message) }
    }

    /// With a place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Diagnostic {
        self.place = place;
        self
    }

    /// With the GPU concerned.
    #[must_use]
    pub fn on_gpu(mut self, index: u32) -> Diagnostic {
        self.gpu = Some(index);
        self
    }

    /// With what was probably meant.
    #[must_use]
    pub fn near(mut self, near: Vec<String>) -> Diagnostic {
        self.near = near;
        self
    }

    /// With what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}
