//! Events that a client publishes on a channel.

use channels::{Decision, Payload, Right, Verdict};
use serde_json::value::RawValue;
use wire::ChannelScope;
use wire::sync::Ack;

use super::seats::Answered;
use crate::fanout::{Key, Worker};
use crate::fault::{Code, Fault};
use crate::stream::refused;

/// A publication whose policy is being heard.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(super) id: String,
    scope: ChannelScope,
    event: String,
    data: Payload,
}

impl Worker {
    pub(super) fn on_publish(
        &mut self,
        key: Key,
        id: &str,
        channel: &str,
        event: &str,
        data: Option<&RawValue>,
    ) -> Result<(), Fault> {
        let hub = self.hub()?;
        let scope: ChannelScope = channel.parse().map_err(|_| Code::NotPermitted)?;
        let json = data.map_or("null", RawValue::get);
        let data = Payload::parse(json.as_bytes())
            .map_err(|error| Fault::detailed(Code::BadFrame, error.to_string()))?;
        let Some(session) = self.session(key) else {
            return Ok(());
        };
        let who = session.who.clone();
        let publishing = Publishing {
            id: id.to_owned(),
            scope,
            event: event.to_owned(),
            data,
        };
        let decision = hub.decide(Right::Publish, &publishing.scope, &who.claims);
        match decision.map_err(refused)? {
            Decision::Made(verdict) => self.publish(key, publishing, verdict)?,
            Decision::Ask(question) => self.ask(key, question, who, |verdict, _| {
                Answered::Publish(Box::new(publishing), verdict)
            }),
        }
        Ok(())
    }

    pub(super) fn publish(
        &mut self,
        key: Key,
        publishing: Publishing,
        verdict: Verdict,
    ) -> Result<(), Fault> {
        let hub = self.hub()?;
        hub.permit(verdict).map_err(refused)?;
        let now = self.face.streams.now();
        let Publishing {
            id,
            scope,
            event,
            data,
        } = publishing;
        let published = hub.publish(&scope, &event, data, now).map_err(refused)?;
        let ack = Ack {
            id: &id,
            cursor: published.cursor.as_ref(),
            ..Ack::default()
        };
        self.say_frame(key, |out| ack.encode_into(out));
        Ok(())
    }
}
