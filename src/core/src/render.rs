//! Diagnostics as rustc prints them: the line of the text with a caret under the place, then what to do.

use crate::diagnostic::{Diagnostic, Place, Severity};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::ops::Range;

/// Prints `diagnostics` in their order; `source` is the text that their places point into. With `colour` as for
/// a terminal.
pub fn render(diagnostics: &[Diagnostic], source: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for diagnostic in diagnostics {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&renderer.render(&[group(diagnostic, source)]));
        text.push('\n');
    }
    text
}

fn group<'a>(diagnostic: &'a Diagnostic, source: &'a str) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(title(diagnostic)).id(diagnostic.reason.code());
    let snippet = diagnostic.place.as_ref().map(|place| {
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

fn title(diagnostic: &Diagnostic) -> String {
    match diagnostic.gpu {
        Some(index) => format!("GPU{index}: {}", diagnostic.message),
        None => diagnostic.message.clone(),
    }
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
        insta::assert_snapshot!(render(&faults, text, false), @r"
        error[layout-invalid]: this entry has no 'mig-devices'
         --> layouts.yaml:4:5
          |
        4 |   - devices: ALL
          |     ^^^^^^^
          |
          = help: list the instances, or write '{}' for MIG on and empty

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
    fn prints_what_has_no_place_or_a_wrong_one() {
        use crate::reason::Reason;
        let far = Place { file: "x".into(), line: 99, column: 99 };
        let faults = [
            Diagnostic::error(Reason::GpuLost, "has fallen off the bus").on_gpu(3),
            Diagnostic::note(Reason::LayoutInvalid, "far away").at(Some(far)),
        ];
        let text = render(&faults, "a: b\n", false);
        assert!(text.starts_with("error[gpu-lost]: GPU3: has fallen off the bus\n"), "{text}");
        assert!(text.contains("note[layout-invalid]: far away"), "{text}");
        assert!(render(&faults, "", true).contains('\u{1b}'));
    }
}
