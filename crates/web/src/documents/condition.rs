//! The conditions of a request: which document it is meant for.
//!
//! An entity tag is the content hash in quotes. `If-Match` compares strongly: a weak tag, one that
//! something on the way changed, or one of an unknown form matches nothing, and the write is
//! refused with the cause; it is never treated as absent (D83). `If-None-Match` of a read compares
//! weakly, and what it doesn't understand just doesn't match.

use documents::{Current, FileStore, ReadError};
use hyper::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};
use wire::{ContentHash, DocPath};

use crate::fault::{Code, Fault};

/// The conditions of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    /// The version that is expected; 0 is none.
    pub(super) expect: Option<u64>,
    pub(super) matches: Option<Tags>,
    pub(super) none_matches: Option<Tags>,
}

/// The tags of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tags {
    /// `*`.
    Any,
    Listed {
        hashes: Vec<ContentHash>,
        /// Why some of the tags can match nothing.
        odd: Option<&'static str>,
    },
}

const WEAK: &str = "a weak tag never matches; send the ETag as it came";
const UNKNOWN: &str = "a tag is not the content hash of a body in quotes; send the ETag as it came";

impl Tags {
    /// Reads all fields called `name`.
    fn read(headers: &HeaderMap, name: HeaderName, weak_is_odd: bool) -> Option<Self> {
        let mut fields = headers.get_all(name).iter().peekable();
        fields.peek()?;
        let (mut hashes, mut odd) = (Vec::new(), None);
        for field in fields {
            let text = field.to_str().unwrap_or("?");
            for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
                let strong = tag.strip_prefix("W/");
                if tag == "*" {
                    return Some(Self::Any);
                }
                if strong.is_some() && weak_is_odd {
                    odd = Some(WEAK);
                    continue;
                }
                match hash(strong.unwrap_or(tag)) {
                    Some(hash) => hashes.push(hash),
                    None => odd = odd.or(Some(UNKNOWN)),
                }
            }
        }
        Some(Self::Listed { hashes, odd })
    }

    fn names(&self, hash: &ContentHash) -> bool {
        match self {
            Self::Any => true,
            Self::Listed { hashes, .. } => hashes.contains(hash),
        }
    }
}

fn hash(tag: &str) -> Option<ContentHash> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    ContentHash::parse(text).ok()
}

/// True if the copy of a reader, as `If-None-Match` names it, has this content.
pub(super) fn copy_is_current(headers: &HeaderMap, content: &ContentHash) -> bool {
    Tags::read(headers, IF_NONE_MATCH, false).is_some_and(|tags| tags.names(content))
}

impl Conditions {
    /// Reads the conditions of a write.
    pub(super) fn read(headers: &HeaderMap, expect: Option<u64>) -> Self {
        Self {
            expect,
            matches: Tags::read(headers, IF_MATCH, true),
            none_matches: Tags::read(headers, IF_NONE_MATCH, false),
        }
    }

    /// The version at which the write is to be done; `None` for whatever is there.
    ///
    /// What a tag names is turned into a version, and the store then checks that and writes in one
    /// step, so that of many writers with one tag exactly one wins.
    pub(super) fn version(&self, store: &FileStore, path: &DocPath) -> Result<Option<u64>, Fault> {
        if self.matches.is_none() && self.none_matches.is_none() {
            return Ok(self.expect);
        }
        let current = match store.current(path) {
            Ok(current) => Some(current),
            Err(ReadError::NotFound) => None,
            Err(error) => return Err(super::unread(path, error)),
        };
        let number = current.map_or(0, |current| current.version);
        self.check(current)?;
        if self.expect.is_some_and(|expect| expect != number) {
            return Err(at_version(number));
        }
        Ok(Some(number))
    }

    fn check(&self, current: Option<Current>) -> Result<(), Fault> {
        let Some(current) = current else {
            return match self.matches {
                Some(_) => Err(failed("there is no document at this path")),
                None => Ok(()),
            };
        };
        match &self.matches {
            Some(Tags::Listed {
                odd: Some(odd),
                hashes,
            }) if !hashes.contains(&current.hash) => {
                return Err(failed(odd));
            }
            Some(tags) if !tags.names(&current.hash) => return Err(at_version(current.version)),
            Some(_) | None => {}
        }
        match &self.none_matches {
            Some(tags) if tags.names(&current.hash) => Err(at_version(current.version)),
            Some(_) | None => Ok(()),
        }
    }
}

/// The document is at another version than the writer expected.
pub(super) fn at_version(version: u64) -> Fault {
    match version {
        0 => failed("there is no document at this path"),
        version => failed(&format!("the document is at version {version}")),
    }
}

fn failed(detail: &str) -> Fault {
    Fault::detailed(Code::ConditionFailed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(body: &str) -> Option<Current> {
        Some(Current {
            version: 3,
            hash: ContentHash::of(body.as_bytes()),
            archived: false,
        })
    }

    fn conditions(name: HeaderName, value: &str) -> Conditions {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        Conditions::read(&headers, None)
    }

    fn tag(body: &str) -> String {
        format!("\"{}\"", ContentHash::of(body.as_bytes()))
    }

    // D83
    #[test]
    fn if_match_holds_for_the_exact_tag_alone() {
        let (a, b) = (tag("a"), tag("b"));
        let holds = |value: &str| conditions(IF_MATCH, value).check(current("a"));
        for value in [
            a.clone(),
            format!("{b}, {a}"),
            "*".into(),
            format!("W/{b}, {a}"),
        ] {
            assert!(holds(&value).is_ok(), "{value}");
        }
        let gzip = a.replace("\"", "").replace("sha256", "\"sha256") + "-gzip\"";
        let bare = a.trim_matches('"').to_owned();
        for (value, cause) in [
            (b, "version 3"),
            (format!("W/{a}"), "weak"),
            (gzip, "not the content hash"),
            (bare, "not the content hash"),
            ("\"\"".into(), "not the content hash"),
            ("nonsense".into(), "not the content hash"),
            (",".into(), "version 3"),
        ] {
            let fault = holds(&value).unwrap_err();
            assert_eq!(fault.code, Code::ConditionFailed, "{value}");
            let detail = fault.detail.unwrap();
            assert!(detail.contains(cause), "{value}: {detail}");
        }
        assert!(conditions(IF_MATCH, "*").check(None).is_err());
        assert!(conditions(IF_MATCH, &a).check(None).is_err());
    }

    // D83
    #[test]
    fn if_none_match_of_a_read_understands_weak_tags_and_lists() {
        let (a, b) = (tag("a"), tag("b"));
        let hash = ContentHash::of(b"a");
        let current = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, value.parse().unwrap());
            copy_is_current(&headers, &hash)
        };
        for value in [a.clone(), format!("W/{a}"), format!("{b},{a}"), "*".into()] {
            assert!(current(&value), "{value}");
        }
        for value in [b, "x".into(), a.replace('"', ""), "\"".into()] {
            assert!(!current(&value), "{value}");
        }
    }

    #[test]
    fn if_none_match_of_a_write_refuses_what_it_names() {
        let star = conditions(IF_NONE_MATCH, "*");
        assert!(star.check(None).is_ok());
        assert!(star.check(current("a")).is_err());
        let other = conditions(IF_NONE_MATCH, &tag("b"));
        assert!(other.check(current("a")).is_ok());
    }
}
