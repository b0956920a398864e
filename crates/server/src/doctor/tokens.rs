//! The tokens: a file that can be taken, tokens that ran out, places that nobody reads.

use std::path::Path;

use auth::{Keyring, Listed, Listing};
use jiff::Timestamp;

use super::Surroundings;
use super::finding::Finding;

const SUBJECT: &str = "tokens";

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let settings = around.settings;
    let keyring = Keyring {
        tokens: settings.tokens_path(),
        closed: settings.closed_path(),
    };
    let data = settings.data.display();
    if !keyring.tokens.exists() {
        found.push(absent(&keyring.tokens, settings.tokens.is_some()));
        if !keyring.closed.exists() {
            return;
        }
    }
    match keyring.list() {
        Ok(listing) => judge(
            &listing,
            &keyring.tokens,
            &data.to_string(),
            around.now,
            found,
        ),
        Err(error) => {
            let mend = format!("${{EDITOR:-vi}} '{}'", keyring.tokens.display());
            found.push(Finding::bad(SUBJECT, error.to_string(), mend));
        }
    }
}

fn absent(path: &Path, is_named: bool) -> Finding {
    let shown = path.display();
    if is_named {
        let what = format!("{shown} is configured and missing: no server starts");
        let mend = format!("tidings token --tokens '{shown}' add --publish '/**'");
        return Finding::bad(SUBJECT, what, mend);
    }
    let what = format!("there is no {shown}: only dev mode writes, everyone reads what is open");
    Finding::ok(SUBJECT, what)
}

fn judge(listing: &Listing, path: &Path, data: &str, now: Timestamp, found: &mut Vec<Finding>) {
    let before = found.len();
    if listing.exposed {
        let what = format!("{} is open to others than its owner", path.display());
        let mend = format!("chmod 600 '{}'", path.display());
        found.push(Finding::warn(SUBJECT, what, mend));
    }
    for token in listing.tokens.iter().filter(|token| token.has_expired(now)) {
        found.push(expired(token, data));
    }
    let is_live = |label: &String| {
        let named = |token: &&Listed| token.label == *label && !token.has_expired(now);
        listing.tokens.iter().any(|token| named(&token))
    };
    for place in &listing.places {
        if !place.readers.iter().any(is_live) {
            let pattern = &place.pattern;
            let what = format!("{pattern} is closed and no token reads there any more");
            let mend = format!("tidings token --data '{data}' open '{pattern}'   # for everyone");
            found.push(Finding::warn(SUBJECT, what, mend));
        }
    }
    if found.len() == before {
        let (tokens, places) = (listing.tokens.len(), listing.places.len());
        let what = format!("{tokens} in force, {places} places closed for reading");
        found.push(Finding::ok(SUBJECT, what));
    }
}

fn expired(token: &Listed, data: &str) -> Finding {
    let label = &token.label;
    let ended = token.expires.map(|at| format!(" at {at}"));
    let what = format!("`{label}` ran out{}", ended.unwrap_or_default());
    let mend = format!("tidings token --data '{data}' revoke '{label}'");
    Finding::warn(SUBJECT, what, mend)
}
