//! Diagnostics as rustc prints them: the line of the text with a caret under the place, then what to do.

use crate::{
    diagnostic::{Diagnostic, Place, Severity},
    target::indexes,
};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::{collections::BTreeMap, ops::Range};

/// The texts that places point into, by file as [`Place::file`] names it.
pub type Sources = BTreeMap<String, String>;

/// Prints `diagnostics` in their order, what is the same for several GPUs once; `sources` has the texts that their
/// places point into. With `colour` as for a terminal.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for (diagnostic, gpus) in merged(diagnostics) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&renderer.render(&[group(diagnostic, gpus, sources)]));
        text.push('\n');
    }
    text
}

/// Each diagnostic once, with all GPUs that it is about.
fn merged(diagnostics: &[Diagnostic]) -> Vec<(&Diagnostic, Vec<u32>)> {
    let mut merged: Vec<(&Diagnostic, Vec<u32>)> = Vec::new();
    for diagnostic in diagnostics {
        let of_gpu = |gpu| Diagnostic { gpu, ..diagnostic.clone() };
        let same = |other: &Diagnostic| diagnostic.gpu.is_some() && of_gpu(other.gpu) == *other;
        match merged.iter_mut().find(|(other, gpus)| !gpus.is_empty() && same(other)) {
            Some((_, gpus)) => gpus.extend(diagnostic.gpu),
            None => merged.push((diagnostic, diagnostic.gpu.into_iter().collect())),
        }
    }
    merged
}

fn group<'a>(diagnostic: &'a Diagnostic, gpus: Vec<u32>, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(title(diagnostic, gpus)).id(diagnostic.reason.code());
    let snippet = diagnostic.place.as_ref().map(|place| {
        let source = sources.get(&place.file).map(String::as_str).unwrap_or_default();
        let annotation = AnnotationKind::Primary.span(span(place, source));
        Snippet::source(source).path(place.file.as_str()).annotation(annotation)
    });
    let mut group = match snippet {
        Some(snippet) => title.element(snippet),
        None => Group::with_title(title),
    };
    if !diagnostic.near.is_empty() {
        let near = format!("did you mean {}?", diagnostic.near.join(" or "));
        group = group.element(Level::HELP.message(near));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

fn title(diagnostic: &Diagnostic, mut gpus: Vec<u32>) -> String {
    if gpus.is_empty() {
        return diagnostic.message.clone();
    }
    gpus.sort_unstable();
    gpus.dedup();
    format!("{}: {}", indexes(gpus), diagnostic.message)
}

/// The bytes of the word that begins at a place; the end of the text if the place is not in it.
fn span(place: &Place, source: &str) -> Range<usize> {
    let line = usize::try_from(place.line).unwrap_or(usize::MAX).saturating_sub(1);
    let column = usize::try_from(place.column).unwrap_or(usize::MAX).saturating_sub(1);
    let mut before = 0;
    for (number, content) in source.split_inclusive('\n').enumerate() {
        if number == line {
            let text = content.trim_end_matches(['\n', '\r']);
            let start = text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
            let rest = text.get(start..).unwrap_or_default();
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => rest.chars().skip(1).position(|c| c == quote).map(|at| at + 2),
                None => rest.chars().position(|c| c.is_whitespace() || ":,{}[]".contains(c)),
            };
            let word: usize = match end {
                Some(end) => rest.chars().take(end).map(char::len_utf8).sum(),
                None => rest.len(),
            };
            return before + start..before + start + word;
        }
        before += content.len();
    }
    source.len()..source.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::parse;

    #[test]
    fn points_at_the_word() {
        let text =
            "version: v1\nmig-configs:\n  ä:\n  - devices: ALL\n    mig-enabled: true\n    mig-device: {}\n";
        let faults = parse(text, "layouts.yaml").unwrap_err();
        let sources = Sources::from([("layouts.yaml".to_owned(), text.to_owned())]);
        insta::assert_snapshot!(render(&faults, &sources, false), @r"
        error[layout-invalid]: 'devices' is the text 'ALL'
         --> layouts.yaml:4:14
          |
        4 |   - devices: ALL
          |              ^^^
          |
          = help: did you mean all?
          = help: 'devices' is 'all' or a list of GPU indexes such as [0, 1]

        error[layout-invalid]: an entry has no key 'mig-device'
         --> layouts.yaml:6:5
          |
        6 |     mig-device: {}
          |     ^^^^^^^^^^
          |
          = help: did you mean mig-devices?
          = help: its keys are device-filter, devices, mig-enabled, mig-devices
        ");
    }

    #[test]
    fn what_is_the_same_for_several_gpus_is_printed_once() {
        use crate::reason::Reason;
        let fault = |gpu, text: &str| Diagnostic::error(Reason::LayoutUnplaceable, text).on_gpu(gpu);
        let faults = [fault(0, "too much"), fault(1, "other"), fault(2, "too much"), fault(3, "too much")];
        let text = render(&faults, &Sources::new(), false);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            ["error[layout-unplaceable]: GPU0, 2-3: too much", "error[layout-unplaceable]: GPU1: other"]
        );
    }

    #[test]
    fn prints_what_has_no_place_or_a_wrong_one() {
        use crate::reason::Reason;
        let far = Place { file: "x".into(), line: 99, column: 99 };
        let faults = [
            Diagnostic::error(Reason::GpuLost, "has fallen off the bus").on_gpu(3),
            Diagnostic::note(Reason::LayoutInvalid, "far away").at(Some(far)),
        ];
        let sources = Sources::from([("x".to_owned(), "a: b\n".to_owned())]);
        let text = render(&faults, &sources, false);
        assert!(text.starts_with("error[gpu-lost]: GPU3: has fallen off the bus\n"), "{text}");
        assert!(text.contains("note[layout-invalid]: far away"), "{text}");
        assert!(render(&faults, &Sources::new(), true).contains('\u{1b}'));
    }
}
