//! The file of places that are closed for reading.
//!
//! A pattern comes in with the first token that may read there and leaves by a command alone
//! (D74), so the loss of a token, or of the whole tokens file, opens nothing.
//!
//! ```toml
//! closed = ["/private/**"]
//! ```

use toml_edit::Document;

use crate::pattern::Pattern;
use crate::tokens::{Fault, FileFault, Reader, syntax_fault};

/// The most places: every read looks at each of them.
pub const CLOSED_MAX: usize = 10_000;

const HEADER: &str = "# Places closed for reading, kept when their last token goes.\n\
                      # `tidings token open GLOB` opens one.\n";

/// Reads the text of the file.
pub(crate) fn parse(text: &str) -> Result<Vec<Pattern>, FileFault> {
    let document = Document::parse(text).map_err(|error| syntax_fault(text, &error))?;
    let reader = Reader { text };
    let Some(item) = document.get("closed") else {
        return Err(reader.fault(None, Fault::Missing("closed")));
    };
    let patterns = reader.patterns("closed", item)?;
    if patterns.len() > CLOSED_MAX {
        return Err(reader.fault(item.span(), Fault::TooMany(CLOSED_MAX, "closed places")));
    }
    Ok(patterns)
}

/// Writes the text of the file.
pub(crate) fn encode(places: &[Pattern]) -> String {
    let mut text = HEADER.to_owned();
    text.push_str("closed = [\n");
    for place in places {
        let quoted = toml_edit::Value::from(place.as_str());
        text.push_str(&format!("    {quoted},\n"));
    }
    text.push_str("]\n");
    text
}

/// Adds the places of `more` that are missing in `places`; true if there were some.
pub(crate) fn join<'a>(
    places: &mut Vec<Pattern>,
    more: impl IntoIterator<Item = &'a Pattern>,
) -> bool {
    let before = places.len();
    for place in more {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    places.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let places: Vec<Pattern> = ["/private/**", "/a\"b/*", "/c\\*"]
            .map(|text| text.parse().unwrap())
            .into();
        assert_eq!(parse(&encode(&places)).unwrap(), places);
        assert_eq!(parse(&encode(&[])).unwrap(), []);
    }

    #[test]
    fn a_truncated_file_is_a_fault() {
        assert_eq!(parse("").unwrap_err().fault, Fault::Missing("closed"));
        assert!(parse("closed = [\n  \"/private").is_err());
    }
}
