//! The pattern of one path segment: `*`, `?`, `[a-z]`, `[^a-z]` and `\` before a plain character.

/// What one segment of a path must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Any,
    Char(char),
    One,
    Set(Set),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    negated: bool,
    ranges: Vec<(char, char)>,
}

impl Segment {
    /// Reads one segment; `None` if a set or an escape is malformed or a set can match nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut chars = text.chars();
        let mut pieces = Vec::new();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => Piece::Any,
                '?' => Piece::One,
                '[' => Piece::Set(Set::parse(&mut chars)?),
                '\\' => Piece::Char(chars.next()?),
                c => Piece::Char(c),
            });
        }
        Some(Self(pieces))
    }

    /// True if `name` looks so.
    ///
    /// Only the last `*` is ever taken back, so the cost is the product of the two lengths at
    /// worst, which the longest path bounds.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let (mut at, mut rest) = (0, name);
        let mut retry: Option<(usize, &str)> = None;
        loop {
            match (self.0.get(at), rest.chars().next()) {
                (None, None) => return true,
                (Some(Piece::Any), _) => {
                    retry = Some((at, rest));
                    at += 1;
                    continue;
                }
                (Some(piece), Some(c)) if piece.takes(c) => {
                    at += 1;
                    rest = &rest[c.len_utf8()..];
                    continue;
                }
                _ => {}
            }
            // A mismatch: the last `*` takes one more character.
            let Some((star, from)) = retry else {
                return false;
            };
            let Some(c) = from.chars().next() else {
                return false;
            };
            rest = &from[c.len_utf8()..];
            retry = Some((star, rest));
            at = star + 1;
        }
    }
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::Char(own) => *own == c,
            Self::One => true,
            Self::Set(set) => set.takes(c),
        }
    }
}

impl Set {
    /// Reads what follows the opening bracket, the closing one included.
    fn parse(chars: &mut std::str::Chars<'_>) -> Option<Self> {
        let negated = chars.as_str().starts_with('^');
        if negated {
            chars.next();
        }
        let mut ranges = Vec::new();
        while !chars.as_str().starts_with(']') {
            let low = member(chars)?;
            let high = if chars.as_str().starts_with('-') {
                chars.next();
                member(chars)?
            } else {
                low
            };
            if low > high {
                return None;
            }
            ranges.push((low, high));
        }
        chars.next();
        (!ranges.is_empty()).then_some(Self { negated, ranges })
    }

    fn takes(&self, c: char) -> bool {
        let listed = self
            .ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&c));
        listed != self.negated
    }
}

fn member(chars: &mut std::str::Chars<'_>) -> Option<char> {
    match chars.next()? {
        '\\' => chars.next(),
        '-' | ']' => None,
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Segment::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn wildcards_work_within_a_name() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "tea.md", true),
            ("*.md", "tea.md", true),
            ("*.md", "tea.txt", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("?", "é", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "zx", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[\\]-]", "]", false),
            ("[\\]a]", "]", true),
        ] {
            if let Some(segment) = Segment::parse(pattern) {
                assert_eq!(segment.matches(name), expected, "{pattern} {name}");
            } else {
                assert!(!expected, "{pattern}");
            }
        }
    }

    /// The same question asked of the simplest possible recursion.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                naive(&pattern[1..], name) || (!name.is_empty() && naive(pattern, &name[1..]))
            }
            (Some('?'), Some(_)) => naive(&pattern[1..], &name[1..]),
            (Some(own), Some(c)) if own == c => naive(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_matcher(pattern in "[ab*?]{0,8}", name in "[abc]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), naive(&chars(&pattern), &chars(&name)));
        }

        #[test]
        fn parsing_never_panics(pattern in ".{0,40}", name in ".{0,40}") {
            if let Some(segment) = Segment::parse(&pattern) {
                segment.matches(&name);
            }
        }
    }
}
