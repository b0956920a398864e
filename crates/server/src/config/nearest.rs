//! The known name that was probably meant.

/// The candidate with the fewest edits from `name`; the first of several.
pub(super) fn nearest(name: &str, candidates: impl Iterator<Item = String>) -> String {
    candidates
        .min_by_key(|candidate| edits(name, candidate))
        .unwrap_or_default()
}

/// How many characters have to be put in, taken out or replaced to make `b` of `a`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // The cost of making each beginning of `b` of what was read of `a` so far.
    let mut costs: Vec<usize> = (0..=b.len()).collect();
    for (read, from) in a.chars().enumerate() {
        let mut diagonal = costs[0];
        costs[0] = read + 1;
        for (at, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = costs[at + 1];
            costs[at + 1] = replace.min(costs[at] + 1).min(diagonal + 1);
        }
    }
    costs[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_insertions_removals_and_replacements() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("serve.mrak", "serve.mark", 2),
            ("é", "e", 1),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_first_of_several_equally_near_is_taken() {
        let candidates = ["cat", "car"].map(str::to_owned);
        assert_eq!(nearest("cab", candidates.into_iter()), "cat");
    }
}
