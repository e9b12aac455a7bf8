//! The trace of calls: one JSON line each, appended by one write.

use crate::machine::Code;
use std::{
    fs::{File, OpenOptions},
    io::Write,
    sync::OnceLock,
    time::Instant,
};

/// The file that calls are appended to, if any.
const TRACE_VARIABLE: &str = "NVML_SIMULATOR_TRACE";

/// A call's arguments as members of a JSON object.
pub(super) struct Notes {
    text: String,
    gpu: Option<usize>,
}

impl Notes {
    /// A number.
    pub(super) fn number(&mut self, name: &'static str, value: i64) {
        self.member(name, &value.to_string());
    }

    /// A text.
    pub(super) fn text(&mut self, name: &'static str, value: &str) {
        let value = serde_json::to_string(value).unwrap_or_default();
        self.member(name, &value);
    }

    /// The GPU of a handle; a call's first one counts.
    pub(super) fn gpu(&mut self, gpu: usize) {
        self.gpu = self.gpu.or(Some(gpu));
    }

    fn member(&mut self, name: &str, value: &str) {
        let comma = if self.text.is_empty() { "" } else { "," };
        self.text.push_str(&format!("{comma}\"{name}\":{value}"));
    }
}

/// A traced call that has begun.
pub(super) struct Span {
    file: &'static File,
    notes: Notes,
    start: Instant,
}

/// Begins a call and answers its GPU, if that was to be asked; without a trace nothing else is noted.
pub(super) fn begin(note: impl FnOnce(&mut Notes), ask: bool) -> (Option<Span>, Option<usize>) {
    let file = file();
    if file.is_none() && !ask {
        return (None, None);
    }
    let mut notes = Notes { text: String::new(), gpu: None };
    note(&mut notes);
    let gpu = notes.gpu;
    (file.map(|file| Span { file, notes, start: Instant::now() }), gpu)
}

/// Writes the line of a call that has ended.
pub(super) fn end(span: Option<Span>, name: &str, code: Code) {
    let Some(Span { mut file, notes: Notes { text: args, .. }, start }) = span else { return };
    let us = start.elapsed().as_nanos() as f64 / 1000.0;
    let pid = std::process::id();
    let result = code.0;
    let line = format!(
        "{{\"pid\":{pid},\"fn\":\"{name}\",\"args\":{{{args}}},\"result\":{result},\"us\":{us:.1}}}\n"
    );
    // O_APPEND makes one write one line, whoever else writes. A full disk must not change what calls answer.
    let _ = file.write(line.as_bytes());
}

/// Opened at the first call of the process.
fn file() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os(TRACE_VARIABLE)?;
        OpenOptions::new().append(true).create(true).open(path).ok()
    })
    .as_ref()
}
