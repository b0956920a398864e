//! What the caller may do.

use hyper::StatusCode;
use serde_json::json;

use crate::answer::{self, Answer};
use crate::call::Call;
use crate::fault::Fault;
use crate::route::{BLANK, Content, Reply, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    template: "/v1/whoami",
    id: "whoami",
    summary: "The caller's grants",
    about: "Says who the server takes the caller for and what it may do.",
    answers: &[Reply {
        status: 200,
        about: "Who the caller is.",
        content: &[Content::json("WhoAmI")],
        headers: &[],
    }],
    handler: |call| Box::pin(async move { whoami(&call) }),
    ..BLANK
}];

fn whoami(call: &Call) -> Result<Answer, Fault> {
    let grants = call.face.authority.current();
    let label = grants.label(&call.caller, call.face.now());
    let who = json!({
        "anonymous": call.caller.is_anonymous(),
        "dev": grants.is_dev(),
        "label": label,
    });
    Ok(answer::json(StatusCode::OK, &who).into())
}
