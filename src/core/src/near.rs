//! What was probably meant: the names nearest to one that is not there.

use crate::profile::ProfileName;

/// How many suggestions one message carries at most.
const MOST: usize = 3;
/// Nobody means a shorter word by a longer one than this, and comparing takes time.
const LONGEST: usize = 100;

/// The words of `from` nearest to `word`, best first: at most three, none that is not like it at all.
pub fn words<'a>(word: &str, from: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if word.len() > LONGEST {
        return Vec::new();
    }
    // A third of the letters may be wrong, and at least two.
    let bound = (word.chars().count() / 3).max(2);
    let lower = word.to_lowercase();
    let mut near: Vec<(usize, &str)> = from
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= bound && *candidate != word)
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// The profiles of `from` nearest to `name`: those of the same slices and attribute first, then of the same
/// slices, then by spelling.
pub fn profiles(name: ProfileName, from: impl IntoIterator<Item = ProfileName>) -> Vec<String> {
    let text = name.to_string();
    let mut near: Vec<(bool, bool, usize, String)> = from
        .into_iter()
        .map(|candidate| {
            // A compute prefix is kept in the suggestion: who asks for 1c.3g.39gb means 1c.3g.40gb.
            let candidate = match name.compute {
                Some(compute) if compute < candidate.slices => candidate.with_compute(compute),
                _ => candidate,
            };
            let spelled = candidate.to_string();
            (
                candidate.slices != name.slices,
                candidate.attribute != name.attribute,
                strsim::damerau_levenshtein(&text, &spelled),
                spelled,
            )
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(.., spelled)| spelled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_the_same_slices_to_a_nearer_spelling() {
        let have = ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb"].map(|n| n.parse().unwrap());
        assert_eq!(profiles("2g.10gb".parse().unwrap(), have).first().unwrap(), "2g.20gb");
        assert_eq!(profiles("1g.5gb+me".parse().unwrap(), have).first().unwrap(), "1g.10gb+me");
        assert_eq!(profiles("1c.3g.20gb".parse().unwrap(), have).first().unwrap(), "1c.3g.40gb");
    }

    #[test]
    fn suggests_nothing_for_a_word_unlike_all() {
        assert!(words("devices", ["mig-enabled", "mig-devices"]).is_empty());
        assert_eq!(words("device", ["mig-enabled", "devices", "device-filter"]), ["devices"]);
    }
}
