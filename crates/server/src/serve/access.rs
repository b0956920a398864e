//! Who may do what at start: by tokens, or everyone in dev mode.
//!
//! Dev mode is never an accident (D77): it is the default only where nobody has configured
//! anything, no tokens file and no closed place was ever made, and no other machine can connect.

use std::net::SocketAddr;
use std::path::PathBuf;

use auth::Files;
use thiserror::Error;

use crate::config::Settings;

/// Where rights come from.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Everyone may do everything.
    Dev,
    /// The tokens file says.
    Tokens(Files),
}

/// Why the start is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum AccessError {
    /// Dev mode where others can connect.
    #[error("--dev gives everyone every right, so it needs a loopback address and not {0}")]
    DevExposed(SocketAddr),
    /// Dev mode and a tokens file that somebody named.
    #[error("--dev and the tokens file {} contradict each other; leave one out", .0.display())]
    DevWithTokens(PathBuf),
    /// The named tokens file isn't there.
    #[error("the tokens file {} is missing; `tidings token add` makes one", .0.display())]
    TokensMissing(PathBuf),
}

impl Access {
    /// Decides by the settings and by which files are there.
    pub(super) fn decide(settings: &Settings) -> Result<Self, AccessError> {
        let tokens = settings.tokens_path();
        let tokens_required = settings.tokens.is_some();
        if tokens_required && !tokens.exists() {
            return Err(AccessError::TokensMissing(tokens));
        }
        let exposed = [Some(settings.mark), settings.http]
            .into_iter()
            .flatten()
            .find(|address| !address.ip().is_loopback());
        let untouched = settings.file.is_none()
            && !tokens_required
            && !tokens.exists()
            && !settings.closed_path().exists();
        match settings.dev {
            Some(true) if let Some(address) = exposed => Err(AccessError::DevExposed(address)),
            Some(true) if tokens_required => Err(AccessError::DevWithTokens(tokens)),
            Some(true) => Ok(Self::Dev),
            None if untouched && exposed.is_none() => Ok(Self::Dev),
            Some(false) | None => Ok(Self::Tokens(Files {
                tokens,
                tokens_required,
                closed: settings.closed_path(),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        settings: Settings,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            data: dir.path().to_owned(),
            ..Settings::default()
        };
        fs::create_dir(settings.private_dir()).unwrap();
        Place { dir, settings }
    }

    fn is_dev(settings: &Settings) -> bool {
        matches!(Access::decide(settings), Ok(Access::Dev))
    }

    const ELSEWHERE: ([u8; 4], u16) = ([192, 0, 2, 1], 6309);

    // D77
    #[test]
    fn dev_is_the_default_only_where_nothing_was_configured() {
        let fresh = place();
        assert!(is_dev(&fresh.settings));
        for file in ["tokens.toml", "closed.toml"] {
            let touched = place();
            fs::write(touched.settings.private_dir().join(file), "").unwrap();
            assert!(!is_dev(&touched.settings), "{file}");
        }
        let configured = Settings {
            file: Some("tidings.toml".into()),
            ..fresh.settings.clone()
        };
        assert!(!is_dev(&configured));
        let exposed = Settings {
            mark: ELSEWHERE.into(),
            ..fresh.settings.clone()
        };
        assert!(!is_dev(&exposed));
        let exposed = Settings {
            http: Some(ELSEWHERE.into()),
            ..fresh.settings
        };
        assert!(!is_dev(&exposed));
    }

    // D77
    #[test]
    fn dev_is_refused_where_others_can_connect_or_tokens_are_named() {
        let mut place = place();
        place.settings.dev = Some(true);
        assert!(is_dev(&place.settings));
        place.settings.mark = ELSEWHERE.into();
        let refused = Access::decide(&place.settings).unwrap_err();
        assert_eq!(refused, AccessError::DevExposed(ELSEWHERE.into()));
        place.settings.mark = Settings::default().mark;
        let tokens = place.dir.path().join("named.toml");
        place.settings.tokens = Some(tokens.clone());
        let refused = Access::decide(&place.settings).unwrap_err();
        assert_eq!(refused, AccessError::TokensMissing(tokens.clone()));
        fs::write(&tokens, "[tokens]\n").unwrap();
        let refused = Access::decide(&place.settings).unwrap_err();
        assert_eq!(refused, AccessError::DevWithTokens(tokens));
    }

    // D77
    #[test]
    fn a_named_tokens_file_that_is_missing_refuses_the_start() {
        let mut place = place();
        let tokens = place.dir.path().join("named.toml");
        place.settings.tokens = Some(tokens.clone());
        let refused = Access::decide(&place.settings).unwrap_err();
        assert_eq!(refused, AccessError::TokensMissing(tokens));
    }
}
