//! What the caller may do.

use auth::Pattern;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::call::Call;
use crate::route::{BLANK, Content, Reply, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    template: "/v1/whoami",
    id: "whoami",
    summary: "The caller's grants",
    about: "Says whom the server takes the caller for and what the caller's token allows. Places \
            that are not closed can be read without one.",
    answers: &[Reply {
        status: 200,
        about: "Who the caller is.",
        content: &[Content::json("WhoAmI")],
        headers: &[],
    }],
    handler: |call| Box::pin(async move { Ok(whoami(&call)) }),
    ..BLANK
}];

fn whoami(call: &Call) -> Answer {
    let grants = call.face.authority.current();
    let allowed = grants.allowed(&call.who.caller, call.face.now());
    let token_expires = allowed.and_then(|allowed| allowed.expires);
    let expires = token_expires.or_else(|| call.who.claims.expires());
    let who = json!({
        "anonymous": call.who.caller.is_anonymous() && call.who.claims.is_anonymous(),
        "dev": grants.is_dev(),
        "label": allowed.map(|allowed| allowed.label),
        "claims": call.who.claims.members(),
        "expires": expires.map(|it| it.to_string()),
        "read": allowed.map_or_else(Vec::new, |allowed| texts(allowed.read)),
        "publish": allowed.map_or_else(Vec::new, |allowed| texts(allowed.publish)),
    });
    answer::json(StatusCode::OK, &who).into()
}

fn texts(patterns: &[Pattern]) -> Vec<Value> {
    let text = |pattern: &Pattern| pattern.as_str().into();
    patterns.iter().map(text).collect()
}
