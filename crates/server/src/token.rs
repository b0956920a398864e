//! The `tidings token` commands: they edit the tokens file, a running server notices by itself.
//!
//! The raw token is the one line that `token add` writes to stdout, and appears nowhere else.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use auth::{Keyring, Listing, NewToken, Pattern};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};

use crate::config::{FileFlags, Settings};

/// Arguments of `tidings token`.
#[derive(Args, Debug)]
pub(crate) struct TokenCommand {
    #[command(flatten)]
    files: FileFlags,
    #[command(subcommand)]
    action: Action,
}

/// What to do with the tokens.
#[derive(Debug, Subcommand)]
enum Action {
    /// Make a token and print it: the only time that it is shown.
    Add(AddArgs),
    /// List the tokens and the places that are closed for reading.
    List {
        /// One JSON object instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Take a token out. What it could read stays closed.
    Revoke {
        /// Its label.
        #[arg(value_name = "ID")]
        label: String,
    },
    /// Open a closed place for everyone.
    Open {
        /// The pattern as `token list` shows it.
        #[arg(value_name = "GLOB")]
        pattern: Pattern,
    },
}

/// Arguments of `tidings token add`.
#[derive(Args, Debug)]
struct AddArgs {
    /// Paths that it may read, and that nobody else may read from then on.
    #[arg(long, value_name = "GLOB")]
    read: Vec<Pattern>,
    /// Paths that it may publish, append to and archive.
    #[arg(long, value_name = "GLOB")]
    publish: Vec<Pattern>,
    /// When it ends: 90m, 12h, 30d, 4w, or an instant such as 2027-01-01T00:00:00Z.
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
    expires: Option<Expiry>,
    /// Its name in the log and in these commands; made up if absent.
    #[arg(long, value_name = "L")]
    label: Option<String>,
}

/// The end of a token as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    After(SignedDuration),
    At(Timestamp),
}

/// Runs the command.
pub(crate) fn run(command: &TokenCommand) -> anyhow::Result<()> {
    let settings = Settings::of_files(&command.files)?;
    let keyring = keyring(&settings)?;
    match &command.action {
        Action::Add(args) => add(&keyring, args, Timestamp::now()),
        Action::List { json } => {
            let listing = keyring.list()?;
            let now = Timestamp::now();
            let text = if *json {
                as_json(&listing, now)
            } else {
                as_lines(&listing, now)
            };
            warn_if_exposed(&listing, &settings.tokens_path());
            io::stdout().write_all(text.as_bytes())?;
            Ok(())
        }
        Action::Revoke { label } => revoke(&keyring, label),
        Action::Open { pattern } => {
            keyring.open(pattern)?;
            eprintln!("{pattern} is open: everyone may read there.");
            Ok(())
        }
    }
}

fn keyring(settings: &Settings) -> anyhow::Result<Keyring> {
    let private = settings.private_dir();
    std::fs::create_dir_all(&private)
        .with_context(|| format!("make the directory {}", private.display()))?;
    Ok(Keyring {
        tokens: settings.tokens_path(),
        closed: settings.closed_path(),
    })
}

fn add(keyring: &Keyring, args: &AddArgs, now: Timestamp) -> anyhow::Result<()> {
    let expires = args.expires.map(|expiry| expiry.instant(now)).transpose()?;
    let added = keyring.add(&NewToken {
        label: args.label.clone(),
        read: args.read.clone(),
        publish: args.publish.clone(),
        expires,
    })?;
    eprintln!(
        "Token `{}` is in {}.",
        added.label,
        keyring.tokens.display()
    );
    for place in &added.closes {
        eprintln!(
            "{place} was public and is closed: without a token nobody reads there, and running \
             watches lose it."
        );
    }
    eprintln!("This is the token. It is shown this once:");
    writeln!(io::stdout(), "{}", added.token.expose())?;
    Ok(())
}

fn revoke(keyring: &Keyring, label: &str) -> anyhow::Result<()> {
    let revoked = keyring.revoke(label)?;
    eprintln!("Token `{label}` is revoked.");
    for place in &revoked.stay_closed {
        eprintln!(
            "{place} stays closed, though no token reads there; `tidings token open '{place}'` \
             opens it."
        );
    }
    Ok(())
}

fn warn_if_exposed(listing: &Listing, path: &Path) {
    if listing.exposed {
        eprintln!(
            "warning: {} is open to others; make its mode 0600",
            path.display()
        );
    }
}

/// Tab-separated lines: `token LABEL READ PUBLISH EXPIRES`, then `closed GLOB READERS`.
fn as_lines(listing: &Listing, now: Timestamp) -> String {
    let mut text = String::new();
    for token in &listing.tokens {
        let ends = match token.expires {
            None => "never".to_owned(),
            Some(expires) if token.has_expired(now) => format!("{expires} (expired)"),
            Some(expires) => expires.to_string(),
        };
        text += &format!(
            "token\t{}\tread {}\tpublish {}\texpires {ends}\n",
            token.label,
            joined(&token.read),
            joined(&token.publish),
        );
    }
    for place in &listing.places {
        let readers = match place.readers.as_slice() {
            [] => "nobody".to_owned(),
            readers => readers.join(" "),
        };
        text += &format!("closed\t{}\treaders {readers}\n", place.pattern);
    }
    text
}

fn joined(patterns: &[Pattern]) -> String {
    if patterns.is_empty() {
        return "nothing".to_owned();
    }
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    texts.join(" ")
}

fn as_json(listing: &Listing, now: Timestamp) -> String {
    let texts = |patterns: &[Pattern]| -> Vec<String> {
        patterns
            .iter()
            .map(|pattern| pattern.as_str().to_owned())
            .collect()
    };
    let tokens: Vec<_> = listing
        .tokens
        .iter()
        .map(|token| {
            serde_json::json!({
                "label": token.label,
                "read": texts(&token.read),
                "publish": texts(&token.publish),
                "expires": token.expires.map(|expires| expires.to_string()),
                "expired": token.has_expired(now),
            })
        })
        .collect();
    let closed: Vec<_> = listing
        .places
        .iter()
        .map(|place| {
            serde_json::json!({ "pattern": place.pattern.as_str(), "readers": place.readers })
        })
        .collect();
    format!(
        "{}\n",
        serde_json::json!({ "tokens": tokens, "closed": closed })
    )
}

impl Expiry {
    fn instant(self, now: Timestamp) -> anyhow::Result<Timestamp> {
        let instant = match self {
            Self::At(instant) => instant,
            Self::After(span) => now.checked_add(span).context("--expires is too far away")?,
        };
        anyhow::ensure!(instant > now, "--expires lies in the past: {instant}");
        Ok(instant)
    }
}

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    const MINUTE: i64 = 60;
    let unit = match text.chars().last() {
        Some('m') => MINUTE,
        Some('h') => 60 * MINUTE,
        Some('d') => 24 * 60 * MINUTE,
        Some('w') => 7 * 24 * 60 * MINUTE,
        _ => {
            let instant = text.parse::<Timestamp>();
            return instant.map(Expiry::At).map_err(|_| expiry_forms());
        }
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| expiry_forms())?;
    Ok(Expiry::After(SignedDuration::from_secs(
        i64::from(number) * unit,
    )))
}

fn expiry_forms() -> String {
    "write 90m, 12h, 30d, 4w, or an instant such as 2027-01-01T00:00:00Z".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_span_or_an_instant() {
        let day = SignedDuration::from_hours(24);
        assert_eq!(parse_expiry("30d"), Ok(Expiry::After(day * 30)));
        assert_eq!(parse_expiry("4w"), Ok(Expiry::After(day * 28)));
        let instant = "2027-01-01T00:00:00Z";
        assert_eq!(
            parse_expiry(instant),
            Ok(Expiry::At(instant.parse().unwrap()))
        );
        for text in ["", "d", "30", "-1d", "30 d", "tomorrow", "é"] {
            assert!(parse_expiry(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_expiry_in_the_past_is_refused() {
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        assert!(Expiry::At(now).instant(now).is_err());
        assert!(Expiry::After(SignedDuration::ZERO).instant(now).is_err());
    }
}
