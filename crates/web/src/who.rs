//! Who calls: a capability token of the tokens file, a JSON web token, or nobody known.
//!
//! A token that is not in force is refused even where anyone may go on, so that its owner learns
//! of it (T15). A token is kept only where a back end is asked in its owner's name, and never
//! shown.

use std::fmt;
use std::sync::Arc;

use auth::jwt::{self, TokenError, Verifier};
use auth::{Caller, Claims};
use hyper::header::{AUTHORIZATION, HeaderMap};
use tokio::sync::Notify;

use crate::face::Face;
use crate::fault::{Code, Fault};

/// How JSON web tokens are checked.
#[derive(Clone, Debug)]
pub struct WebTokens {
    /// Knows the keys.
    pub verifier: Arc<Verifier>,
    /// Told when a token was signed with an unknown key, so that whoever fetches keys may look
    /// again.
    pub unknown_key: Arc<Notify>,
}

/// Who calls.
#[derive(Clone)]
pub(crate) struct Who {
    /// Whose rights over documents they are. A JSON web token has none of its own.
    pub(crate) caller: Caller,
    /// What the policies of channels read.
    pub(crate) claims: Arc<Claims>,
    /// The token as it was sent, for a back end that is asked.
    pub(crate) token: Option<Arc<str>>,
}

impl Who {
    /// Somebody who showed nothing.
    pub(crate) fn anonymous() -> Self {
        Self {
            caller: Caller::anonymous(),
            claims: Arc::default(),
            token: None,
        }
    }

    /// Who sent a request with these fields.
    pub(crate) fn of_headers(face: &Face, headers: &HeaderMap) -> Result<Self, Fault> {
        Self::identify(face, bearer(headers)?)
    }

    /// Who shows `token`.
    pub(crate) fn identify(face: &Face, token: Option<&str>) -> Result<Self, Fault> {
        let Some(token) = token else {
            return Ok(Self::anonymous());
        };
        let (caller, claims) = match &face.web_tokens {
            Some(tokens) if jwt::is_token_shaped(token) => {
                (Caller::anonymous(), tokens.claims(token, face)?)
            }
            _ => by_capability(face, token)?,
        };
        Ok(Self {
            caller,
            claims: Arc::new(claims),
            token: Some(token.into()),
        })
    }

    /// True if the token is still in force, or there was none.
    pub(crate) fn is_in_force(&self, face: &Face) -> bool {
        let grants = face.authority.current();
        let now = face.now();
        let is_known =
            self.caller.is_anonymous() || grants.is_dev() || grants.knows(&self.caller, now);
        is_known && !self.claims.is_expired(now)
    }
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Who")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

impl WebTokens {
    fn claims(&self, token: &str, face: &Face) -> Result<Claims, Fault> {
        self.verifier.verify(token, face.now()).map_err(|error| {
            if error == TokenError::UnknownKey {
                self.unknown_key.notify_one();
            }
            Fault::detailed(Code::Unauthorized, format!("the token: {error}"))
        })
    }
}

fn by_capability(face: &Face, token: &str) -> Result<(Caller, Claims), Fault> {
    let caller = Caller::with_token(token);
    let grants = face.authority.current();
    match grants.label(&caller, face.now()) {
        Some(label) => Ok((caller, Claims::of_token(label))),
        None if grants.is_dev() => Ok((caller, Claims::anonymous())),
        None => {
            let detail = "the token is unknown or has expired";
            Err(Fault::detailed(Code::Unauthorized, detail))
        }
    }
}

/// The bearer token that was sent, if one was.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Fault> {
    const SCHEME: &str = "bearer ";
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let Some(field) = fields.next() else {
        return Ok(None);
    };
    if fields.next().is_some() {
        let detail = "Authorization stands there more than once";
        return Err(Fault::detailed(Code::Unauthorized, detail));
    }
    let token = field.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_at_checked(SCHEME.len())?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case(SCHEME) && !token.is_empty()).then_some(token)
    });
    let bad = || Fault::detailed(Code::Unauthorized, "Authorization must be `Bearer TOKEN`");
    token.map(Some).ok_or_else(bad)
}
