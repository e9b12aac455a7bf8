//! Product names with `*` and `?`, in any case, with or without `NVIDIA ` before them.

use crate::{diagnostic::Place, target::short_model};
use std::fmt;

/// A pattern for product names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// As written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

impl Glob {
    /// Whether the whole name is meant.
    pub fn matches(&self, model: &str) -> bool {
        let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
        let pattern = lower(&self.text);
        glob(&pattern, &lower(model)) || glob(&pattern, &lower(short_model(model)))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// With one point to come back to: the last `*` (Krauss's algorithm), so that no pattern takes long.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(t) {
        match pattern.get(p) {
            Some('*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == letter => {
                p += 1;
                t += 1;
            }
            _ => match &mut back {
                Some((star, from)) => {
                    *from += 1;
                    (p, t) = (*star + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_whole_name_with_or_without_its_maker() {
        let place = Place { file: "t".into(), line: 1, column: 1 };
        let matches =
            |text: &str, model: &str| Glob { text: text.into(), place: place.clone() }.matches(model);
        let model = "NVIDIA A100-SXM4-40GB";
        for text in ["A100*", "a100-sxm4-40gb", "NVIDIA A100*", "*40GB", "*", "A?00-*-40*", "*a*0*b"] {
            assert!(matches(text, model), "{text}");
        }
        for text in ["A100", "A30*", "100*", "", "*80GB", "A100-SXM4-40GB?"] {
            assert!(!matches(text, model), "{text}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(150)), "and it ends");
    }
}
