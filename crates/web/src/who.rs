//! Who calls: a capability token of the tokens file, a JSON web token, or nobody known.
//!
//! A token that is not in force is refused even where anyone may go on, so that its owner learns
//! of it (T15). Nothing here keeps a token or shows one.

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

/// What is known of a caller.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Known to the grants over documents.
    pub(crate) caller: Caller,
    /// Known to policies.
    pub(crate) claims: Arc<Claims>,
}

impl Who {
    /// Somebody who showed nothing.
    pub(crate) fn anonymous() -> Self {
        Self {
            caller: Caller::anonymous(),
            claims: Arc::default(),
        }
    }
}

/// Who sent a request with these fields.
pub(crate) fn of_headers(face: &Face, headers: &HeaderMap) -> Result<Who, Fault> {
    match bearer(headers)? {
        None => Ok(Who::anonymous()),
        Some(token) => of_token(face, token),
    }
}

/// Who shows `token`.
pub(crate) fn of_token(face: &Face, token: &str) -> Result<Who, Fault> {
    if let Some(tokens) = &face.web_tokens
        && jwt::is_token_shaped(token)
    {
        let verified = tokens.verifier.verify(token, face.now());
        let claims = verified.map_err(|error| {
            if error == TokenError::UnknownKey {
                tokens.unknown_key.notify_one();
            }
            Fault::detailed(Code::Unauthorized, format!("the token: {error}"))
        })?;
        return Ok(Who {
            caller: Caller::anonymous(),
            claims: Arc::new(claims),
        });
    }
    let caller = Caller::with_token(token);
    let grants = face.authority.current();
    let claims = match grants.label(&caller, face.now()) {
        Some(label) => Arc::new(Claims::of_token(label)),
        None if grants.is_dev() => Arc::default(),
        None => {
            let detail = "the token is unknown or has expired";
            return Err(Fault::detailed(Code::Unauthorized, detail));
        }
    };
    Ok(Who { caller, claims })
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
