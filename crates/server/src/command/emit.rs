//! `tidings emit`: publishes an event on a channel, over HTTP.

use std::io::{self, Read};

use clap::Args;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::{ChannelScope, Scope};

use super::connect::Connection;
use super::failure::Failure;
use super::output::Output;

/// More than the data of any event; the server has the word.
const DATA_LEN_MAX: u64 = 1 << 20;

/// An answer holds a cursor.
const ANSWER_LEN_MAX: usize = 4_096;

/// Arguments of `tidings emit`.
#[derive(Args, Debug)]
pub(crate) struct EmitArgs {
    /// The channel, such as channel:room?id=42.
    #[arg(value_name = "CHANNEL", value_parser = parse_channel)]
    channel: ChannelScope,
    /// The event, one that the channel declares.
    #[arg(value_name = "EVENT")]
    event: String,
    /// Its data as JSON; - reads it from stdin. Missing, it is null.
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    data: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct Event<'a> {
    event: &'a str,
    data: Box<RawValue>,
}

/// What the server answers, and what is printed.
#[derive(Debug, Deserialize, Serialize)]
struct Published {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

pub(super) async fn run(args: &EmitArgs) -> Result<(), Failure> {
    let server = args.connection.web("emit")?;
    let event = Event {
        event: &args.event,
        data: args.data()?,
    };
    let text = Scope::Channel(args.channel.clone()).to_string();
    let path = text.strip_prefix("channel:").unwrap_or(&text);
    let path = format!("/v1/channels/{path}");
    let request = Request::post("/").header(CONTENT_TYPE, "application/json");
    let answer = server
        .ask(&path, request, serde_json::to_vec(&event)?)
        .await?;
    let body = server.url.body(answer, ANSWER_LEN_MAX).await?;
    let published: Published = serde_json::from_slice(&body)?;
    let mut output = Output::new(args.connection.json);
    match &published.cursor {
        Some(cursor) => output.line(&published, &[cursor]),
        // Without a history there is no position to print.
        None if output.is_json() => output.line(&published, &[]),
        None => Ok(()),
    }
}

impl EmitArgs {
    fn data(&self) -> Result<Box<RawValue>, Failure> {
        let text = match self.data.as_deref() {
            None => "null".to_owned(),
            Some("-") => {
                let mut text = String::new();
                let stdin = io::stdin().lock();
                stdin.take(DATA_LEN_MAX).read_to_string(&mut text)?;
                text
            }
            Some(text) => text.to_owned(),
        };
        serde_json::from_str(text.trim()).map_err(|error| {
            Failure::usage(format!("the data is not JSON: {error}"))
                .fix(r#"a text stands in quotes of its own: '"hello"'"#)
        })
    }
}

fn parse_channel(text: &str) -> Result<ChannelScope, String> {
    match text.parse() {
        Ok(Scope::Channel(channel)) => Ok(channel),
        Ok(_) => Err("write it as channel:room?id=42".to_owned()),
        Err(error) => Err(format!("{error}; write it as channel:room?id=42")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_channels_take_events() {
        assert_eq!(parse_channel("channel:room?id=42").unwrap().name(), "room");
        for text in ["/notes/", "doc:/notes/", "room", "channel:", "channel:a b"] {
            assert!(parse_channel(text).is_err(), "{text}");
        }
    }
}
