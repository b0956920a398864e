//! Builds a declaration step by step and checks it at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use auth::policy::{Expression, ExpressionError};
use wire::is_channel_name;

use super::{Declaration, DeclarationError, Fault, ParamKind};
use crate::limits::{EVENT_NAME_LEN_MAX, EVENTS_MAX, HISTORY_MAX, PARAMS_MAX};
use crate::policy::{Policy, Rule};

/// A declaration in the making. Nothing is checked before [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    params: Vec<(String, String)>,
    policy: Option<Rule>,
    publish: Option<Rule>,
    events: Vec<String>,
    history: Option<i64>,
    has_presence: bool,
    admits_anonymous: bool,
    catch_up: Option<String>,
}

impl Builder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            params: Vec::new(),
            policy: None,
            publish: None,
            events: Vec::new(),
            history: None,
            has_presence: false,
            admits_anonymous: false,
            catch_up: None,
        }
    }

    /// Adds a param of kind `int` or `string`.
    #[must_use]
    pub fn param(mut self, name: &str, kind: &str) -> Self {
        self.params.push((name.to_owned(), kind.to_owned()));
        self
    }

    /// Says who may join; required.
    #[must_use]
    pub fn policy(mut self, rule: impl Into<Rule>) -> Self {
        self.policy = Some(rule.into());
        self
    }

    /// Says who may publish from a socket; otherwise nobody may.
    #[must_use]
    pub fn publish(mut self, rule: impl Into<Rule>) -> Self {
        self.publish = Some(rule.into());
        self
    }

    /// Adds events that may be published.
    #[must_use]
    pub fn events<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.events.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Keeps the last `events` of each topic.
    #[must_use]
    pub const fn history(mut self, events: i64) -> Self {
        self.history = Some(events);
        self
    }

    /// Tells members of each other.
    #[must_use]
    pub const fn presence(mut self) -> Self {
        self.has_presence = true;
        self
    }

    /// Has a back end or a closure decide about the anonymous too.
    #[must_use]
    pub const fn anonymous(mut self) -> Self {
        self.admits_anonymous = true;
        self
    }

    /// Names the path or URL where a client reads the state after a gap; `{id}` in it stands for
    /// the param `id`.
    #[must_use]
    pub fn catch_up(mut self, place: &str) -> Self {
        self.catch_up = Some(place.to_owned());
        self
    }

    /// Checks everything.
    pub fn build(self) -> Result<Declaration, DeclarationError> {
        let name = self.name.clone();
        self.checked()
            .map_err(|fault| DeclarationError::new(&name, fault))
    }

    fn checked(self) -> Result<Declaration, Fault> {
        if !is_channel_name(&self.name) {
            return Err(Fault::Name);
        }
        let params = params(&self.params)?;
        let join = self.policy.ok_or(Fault::NoPolicy)?;
        Ok(Declaration {
            join: policy(join, &params, Fault::Policy)?,
            publish: self
                .publish
                .map(|rule| policy(rule, &params, Fault::Publish))
                .transpose()?,
            events: events(self.events)?,
            history: self.history.map(history).transpose()?,
            catch_up: self
                .catch_up
                .map(|place| catch_up(place, &params))
                .transpose()?,
            name: self.name,
            params,
            has_presence: self.has_presence,
            admits_anonymous: self.admits_anonymous,
        })
    }
}

fn params(written: &[(String, String)]) -> Result<Vec<(String, ParamKind)>, Fault> {
    let mut params = Vec::new();
    for (name, word) in written {
        if !is_channel_name(name) {
            return Err(Fault::ParamName(name.clone()));
        }
        let kind = ParamKind::parse(word).ok_or_else(|| Fault::ParamKind {
            param: name.clone(),
            kind: word.clone(),
        })?;
        params.push((name.clone(), kind));
    }
    if params.len() > PARAMS_MAX {
        return Err(Fault::TooManyParams);
    }
    params.sort_by(|(left, _), (right, _)| left.cmp(right));
    match params.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Fault::ParamRepeated(pair[0].0.clone())),
        None => Ok(params),
    }
}

fn policy(
    rule: Rule,
    params: &[(String, ParamKind)],
    fault: fn(ExpressionError) -> Fault,
) -> Result<Policy, Fault> {
    match rule {
        Rule::Ask(url) if is_url(&url) => Ok(Policy::Ask(url.into())),
        Rule::Ask(url) => Err(Fault::AskUrl(url)),
        Rule::Check(check) => Ok(Policy::Check(check)),
        Rule::Expression(text) => {
            let expression = Expression::parse(&text).map_err(fault)?;
            let unknown = expression.params().find(|name| !declares(params, name));
            match unknown.map(str::to_owned) {
                Some(name) => Err(Fault::PolicyParam(name)),
                None => Ok(Policy::Expression(expression)),
            }
        }
    }
}

fn declares(params: &[(String, ParamKind)], name: &str) -> bool {
    params.iter().any(|(own, _)| own == name)
}

fn events(names: Vec<String>) -> Result<BTreeSet<Arc<str>>, Fault> {
    if names.len() > EVENTS_MAX {
        return Err(Fault::TooManyEvents);
    }
    match names.iter().find(|name| !is_event_name(name)) {
        Some(name) => Err(Fault::EventName(name.clone())),
        None => Ok(names.into_iter().map(Arc::from).collect()),
    }
}

/// True for names that stand in any frame as they are, line breaks in none.
fn is_event_name(name: &str) -> bool {
    (1..=EVENT_NAME_LEN_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn history(events: i64) -> Result<usize, Fault> {
    let kept = usize::try_from(events).map_err(|_| Fault::History(events))?;
    if (1..=HISTORY_MAX).contains(&kept) {
        Ok(kept)
    } else {
        Err(Fault::History(events))
    }
}

fn catch_up(place: String, params: &[(String, ParamKind)]) -> Result<String, Fault> {
    let is_place = is_url(&place) || (place.starts_with('/') && !place.starts_with("//"));
    let names_params = place.split('{').skip(1).all(|rest| {
        let name = rest.split_once('}').map(|(name, _)| name);
        name.is_some_and(|name| declares(params, name))
    });
    if is_place && names_params && !has_breaks(&place) {
        Ok(place)
    } else {
        Err(Fault::CatchUp(place))
    }
}

fn is_url(text: &str) -> bool {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) && !has_breaks(text)
}

fn has_breaks(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || c.is_control())
}
