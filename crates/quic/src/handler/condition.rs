//! Conditional reads: may the client go on with the copy it has?

use jiff::Timestamp;
use wire::Metadata;

/// True if the copy that the request's conditions describe is current.
///
/// With an etag the date doesn't count: two writes within one second have one date, and a client
/// that sends both would keep the older copy for ever (D82).
pub(super) fn copy_is_current(request: &Metadata, etag: &str, modified: Option<Timestamp>) -> bool {
    if let Some(known) = request.get("if-none-match") {
        return lists(known, etag);
    }
    let since = request
        .get("if-modified-since")
        .and_then(|text| text.parse::<Timestamp>().ok());
    match (modified, since) {
        // Times on the wire have whole seconds.
        (Some(modified), Some(since)) => modified.as_second() <= since.as_second(),
        _ => false,
    }
}

/// True if `known` names `etag`: bare, in quotes, weak, in a list, or as `*` (D83).
fn lists(known: &str, etag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| {
        let one = one.strip_prefix("W/").unwrap_or(one);
        let bare = one
            .strip_prefix('"')
            .and_then(|one| one.strip_suffix('"'))
            .unwrap_or(one);
        bare == etag || one == "*"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODIFIED: &str = "2026-11-29T23:24:21.75Z";

    fn is_current(conditions: &[(&str, &str)]) -> bool {
        let request = conditions.iter().copied().collect();
        copy_is_current(&request, "2bd5", Some(MODIFIED.parse().unwrap()))
    }

    // D83
    #[test]
    fn an_etag_is_understood_in_every_spelling() {
        for known in [
            "2bd5",
            "\"2bd5\"",
            "W/\"2bd5\"",
            "*",
            "\"x\", W/\"2bd5\"",
            "00,2bd5",
        ] {
            assert!(is_current(&[("if-none-match", known)]), "{known}");
        }
        for known in ["", "2bd", "\"2bd5", "2bd5-gzip", "**", "w/2bd5", "00"] {
            assert!(!is_current(&[("if-none-match", known)]), "{known}");
        }
    }

    // D82
    #[test]
    fn an_etag_that_differs_beats_a_date() {
        let conditions = [
            ("if-none-match", "00"),
            ("if-modified-since", "2100-01-01T00:00:00Z"),
        ];
        assert!(!is_current(&conditions));
        assert!(is_current(&conditions[1..]));
    }

    #[test]
    fn a_date_counts_in_whole_seconds_and_garbage_does_not_count() {
        assert!(is_current(&[("if-modified-since", "2026-11-29T23:24:21Z")]));
        assert!(!is_current(&[(
            "if-modified-since",
            "2026-11-29T23:24:20Z"
        )]));
        assert!(!is_current(&[("if-modified-since", "yesterday")]));
        assert!(!is_current(&[]));
    }
}
