//! Printing: one way to standard output and one to standard error, which a closed pipe does not turn into an
//! error (an apply whose reader went away goes on), and the sentences for what happened.

use migd::{Event, GpuOutcome, GpuResult, Outcome};
use migd_core::{
    diagnostic::Diagnostic,
    document::Failure,
    plan::Action,
    render::{Sources, render},
};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Prints to standard output. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints to standard error. One that is closed leaves no one to tell, and must not end what is under way.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints one JSON document.
pub(crate) fn document(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => say(&format!("error[internal]: the answer cannot be written as JSON: {error}\n")),
    }
}

/// Tells what is wrong, on standard error as rustc does, or with `json` as a document on standard output.
/// `sources` has the texts that places point into.
pub(crate) fn failure(failure: &Failure, sources: &Sources, json: bool) {
    if json {
        document(failure);
    } else {
        diagnostics(&failure.details, sources);
    }
}

/// Tells them on standard error as rustc does.
pub(crate) fn diagnostics(all: &[Diagnostic], sources: &Sources) {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    say(&render(all, sources, colour));
}

/// A note, as a line.
pub(crate) fn note(note: &Diagnostic) -> String {
    let place = note.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    format!("note: {place}{}\n", note.message)
}

/// One line on standard error for what takes time or goes wrong; `None` for what is over in an instant.
pub(crate) fn progress(event: &Event) -> Option<String> {
    match event {
        Event::Started { index, action, .. } => matters(action).then(|| format!("GPU{index}  {action} ...")),
        Event::Finished { .. } => None,
        Event::Said { index, text, .. } => Some(format!("GPU{index}  {text}")),
    }
}

/// Whether a step can take seconds on hardware.
fn matters(action: &Action) -> bool {
    matches!(action, Action::SetMode { .. })
}

/// What came of an apply: a line for each GPU that is not unchanged, and one for all.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let mut text = String::new();
    for gpu in outcome.gpus.iter().filter(|gpu| gpu.result != GpuResult::Unchanged) {
        text.push_str(&gpu_line(gpu));
    }
    let totals = outcome.totals;
    let seconds = format!("{}.{:03} s", totals.ms / 1000, totals.ms % 1000);
    let line = if totals.changed == 0 && totals.failed == 0 {
        format!("Nothing to do: {} already as '{}' says\n", count(totals.unchanged, "GPU"), outcome.layout)
    } else if totals.failed == 0 {
        format!(
            "Applied '{}' in {seconds}: {} changed, {} unchanged; read back and right\n",
            outcome.layout,
            count(totals.changed, "GPU"),
            totals.unchanged
        )
    } else {
        format!(
            "Not applied: {} of {} not as '{}' says\n",
            totals.failed,
            count(totals.failed + totals.changed + totals.unchanged, "GPU"),
            outcome.layout
        )
    };
    text + &line
}

fn gpu_line(gpu: &GpuOutcome) -> String {
    let result = match gpu.result {
        GpuResult::Unchanged => "unchanged",
        GpuResult::Changed => "changed",
        GpuResult::NotStarted => "not started",
        GpuResult::PendingReset => "pending a reset",
        GpuResult::PendingReboot => "pending a reboot",
        GpuResult::Blocked => "blocked",
        GpuResult::Refused => "refused",
        GpuResult::RolledBack => "rolled back",
        GpuResult::Failed => "FAILED",
    };
    let mut text = format!("GPU{}  {result}", gpu.index);
    if let Some(reason) = gpu.reason {
        text.push_str(&format!(" [{reason}]"));
    }
    match &gpu.message {
        Some(message) => text.push_str(&format!(": {message}")),
        None => text.push_str(&format!(": {}", sums(&gpu.done, gpu.reset))),
    }
    if let Some(action) = &gpu.failed_step {
        text.push_str(&format!("\n      while {action}"));
    }
    if let Some(cause) = &gpu.cause {
        text.push_str(&format!("\n      because [{}] {}", cause.reason, cause.message));
    }
    text + "\n"
}

/// The done steps in short: `MIG enabled, 4 destroyed, 7 created`.
fn sums(done: &[Action], reset: bool) -> String {
    let number = |test: fn(&Action) -> bool| done.iter().filter(|action| test(action)).count();
    let mut parts = Vec::new();
    for action in done {
        if let Action::SetMode { enabled } = action {
            parts.push(if *enabled { "MIG enabled".to_owned() } else { "MIG disabled".to_owned() });
        }
    }
    if reset {
        parts.push("reset".to_owned());
    }
    let counts = [
        (number(|a| matches!(a, Action::DestroyInstance { .. })), "destroyed"),
        (number(|a| matches!(a, Action::CreateInstance { .. })), "created"),
    ];
    parts.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    if parts.is_empty() { "compute instances changed".to_owned() } else { parts.join(", ") }
}

/// So many things.
pub(crate) fn count(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
