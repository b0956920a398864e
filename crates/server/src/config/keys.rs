//! The table of every key.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{ConfigError, LOG_VARIABLE, Settings};

type Field<T> = fn(&mut Settings) -> &mut T;

/// One key: where it stands, what it may hold, and the field it sets.
pub(crate) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    kind: Kind,
    pub(super) about: &'static str,
}

/// What a key may hold.
enum Kind {
    Address(Field<SocketAddr>),
    Count(u64, u64, Field<usize>),
    Count32(u32, u32, Field<u32>),
    Format(Field<LogFormat>),
    Flag(Field<bool>),
    Millis(u64, u64, Field<Duration>),
    OptionalCount(u64, u64, Field<Option<u64>>),
    OptionalPath(Field<Option<PathBuf>>),
    Path(Field<PathBuf>),
    PowerOfTwo(u64, u64, Field<usize>),
    Switch(Field<Option<bool>>),
    Text(Field<String>),
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Above any machine's reach, and below what the counters behind it can hold.
const MANY: u64 = 1 << 30;
const MANY_32: u32 = 1 << 30;

/// More than any machine has, and exact in every reader of TOML.
const MEMORY_MAX: u64 = 1 << 50;

/// A transport counts its streams in 62 bits; each costs memory at once, so far fewer make sense.
const STREAMS_MAX: u32 = 65_536;

/// Every key, by section. The order is that of `docs/configuration.md`.
pub(super) const KEYS: &[Key] = &[
    key(
        "serve",
        "data",
        Kind::Path(|s| &mut s.data),
        "The data directory: a tree of documents.",
    ),
    key(
        "serve",
        "mark",
        Kind::Address(|s| &mut s.mark),
        "Where the Mark face listens (UDP).",
    ),
    key(
        "serve",
        "admin",
        Kind::Address(|s| &mut s.admin),
        "Where `/livez`, `/readyz` and `/metrics` answer (TCP); loopback only.",
    ),
    key(
        "serve",
        "dev",
        Kind::Switch(|s| &mut s.dev),
        "Everyone on this machine may do everything; loopback only. Unset, it is on when there is \
         neither a configuration nor a tokens file.",
    ),
    key(
        "serve",
        "certificate",
        Kind::OptionalPath(|s| &mut s.certificate),
        "The certificate chain in PEM form. Unset, one for `localhost` is made and kept in the \
         data directory.",
    ),
    key(
        "serve",
        "certificate_key",
        Kind::OptionalPath(|s| &mut s.certificate_key),
        "The certificate's key in PEM form.",
    ),
    key(
        "serve",
        "log",
        Kind::Text(|s| &mut s.log),
        "What is logged, such as `info` or `warn,quic=debug`. `TIDINGS_LOG` sets it for every \
         command.",
    ),
    key(
        "serve",
        "log_format",
        Kind::Format(|s| &mut s.log_format),
        "How log lines are written.",
    ),
    key(
        "documents",
        "ring_len",
        Kind::PowerOfTwo(16, 1 << 20, |s| &mut s.ring_len),
        "Changes that a watch can resume over.",
    ),
    key(
        "documents",
        "required",
        Kind::Flag(|s| &mut s.documents_required),
        "The server is ready only while documents can be written. Turned off, a store that takes \
         no more writes shows in readiness and doesn't count.",
    ),
    key(
        "auth",
        "tokens",
        Kind::OptionalPath(|s| &mut s.tokens),
        "The tokens file; it must be there. Unset, it is `.tidings/tokens.toml` in the data \
         directory, and may be missing.",
    ),
    key(
        "limits",
        "accepts_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.limits.accepts_per_second),
        "Handshakes begun per second; beyond it a dial is refused. 0 is off.",
    ),
    key(
        "limits",
        "answer_bytes",
        Kind::Count(4 << 20, MANY, |s| &mut s.limits.answer_bytes),
        "Bytes of answers that wait for their readers.",
    ),
    key(
        "limits",
        "closing_step_ms",
        Kind::Millis(0, 1000, |s| &mut s.limits.closing_step),
        "How much the window of a drain grows with each watch.",
    ),
    key(
        "limits",
        "closing_window_max_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.limits.closing_window_max),
        "The longest window in which a drain ends its watches.",
    ),
    key(
        "limits",
        "connections",
        Kind::Count(1, MANY, |s| &mut s.limits.connections),
        "Open connections.",
    ),
    key(
        "limits",
        "connections_per_address",
        Kind::Count(1, MANY, |s| &mut s.limits.connections_per_address),
        "Open connections of one address.",
    ),
    key(
        "limits",
        "drain_timeout_ms",
        Kind::Millis(0, 10 * 60 * 1000, |s| &mut s.limits.drain_timeout),
        "How long requests may take to finish once a drain has begun.",
    ),
    key(
        "limits",
        "handshake_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.handshake_timeout),
        "A handshake that takes longer is given up.",
    ),
    key(
        "limits",
        "handshakes",
        Kind::Count(1, MANY, |s| &mut s.limits.handshakes),
        "Handshakes in progress.",
    ),
    key(
        "limits",
        "handshakes_unproved",
        Kind::Count(0, MANY, |s| &mut s.limits.handshakes_unproved),
        "Handshakes in progress from which on a dialler must prove its address.",
    ),
    key(
        "limits",
        "heartbeat_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.heartbeat),
        "A watch is told its position this long after its last block.",
    ),
    key(
        "limits",
        "idle_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.idle_timeout),
        "A connection on which nothing arrives for this long is gone.",
    ),
    key(
        "limits",
        "memory_bytes",
        Kind::OptionalCount(0, MEMORY_MAX, |s| &mut s.memory_bytes),
        "Resident memory above which new connections, watches and large uploads are refused. 0 is \
         off; unset, it is three quarters of what the machine or the control group has.",
    ),
    key(
        "limits",
        "rate_addresses",
        Kind::Count(1, MANY, |s| &mut s.limits.rate_addresses),
        "Addresses whose request rate is remembered; the rest share one budget.",
    ),
    key(
        "limits",
        "rate_burst",
        Kind::Count32(1, MANY_32, |s| &mut s.limits.rate_burst),
        "Requests that an address may make at once after a pause.",
    ),
    key(
        "limits",
        "rate_per_second",
        Kind::Count32(0, MANY_32, |s| &mut s.limits.rate_per_second),
        "Requests per second and address. 0 is off, which it is in dev mode unless set.",
    ),
    key(
        "limits",
        "request_timeout_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.request_timeout),
        "From a stream's acceptance to the end of its request, and again for its answer.",
    ),
    key(
        "limits",
        "requests",
        Kind::Count(1, MANY, |s| &mut s.limits.requests),
        "Requests that are worked on at once.",
    ),
    key(
        "limits",
        "requests_per_connection",
        Kind::Count(1, MANY, |s| &mut s.limits.requests_per_connection),
        "Requests of one connection that are worked on at once.",
    ),
    key(
        "limits",
        "streams_initial",
        Kind::Count32(1, STREAMS_MAX, |s| &mut s.limits.streams_initial),
        "Streams that a connection may have open at first.",
    ),
    key(
        "limits",
        "streams_max",
        Kind::Count32(1, STREAMS_MAX, |s| &mut s.limits.streams_max),
        "Streams that a connection may have open at most; watches may take half.",
    ),
    key(
        "limits",
        "udp_buffer_bytes",
        Kind::Count(0, MANY, |s| &mut s.limits.udp_buffer_bytes),
        "The socket's buffers, each way. The kernel may grant less.",
    ),
    key(
        "limits",
        "uploads",
        Kind::Count(1, MANY, |s| &mut s.limits.uploads),
        "Requests beyond a few KiB that are read at once.",
    ),
    key(
        "limits",
        "watches",
        Kind::Count(1, MANY, |s| &mut s.limits.watches),
        "Watches in all.",
    ),
    key(
        "limits",
        "write_stall_ms",
        Kind::Millis(1, DAY_MS, |s| &mut s.limits.write_stall),
        "A watch whose client takes no byte of a block for this long is ended.",
    ),
];

const fn key(section: &'static str, name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        section,
        name,
        kind,
        about,
    }
}

/// The key `SECTION.NAME`.
pub(super) fn find(full_name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.full_name() == full_name)
}

/// The key that the environment variable sets.
pub(super) fn find_variable(name: &str) -> Option<&'static Key> {
    if name == LOG_VARIABLE {
        return find("serve.log");
    }
    KEYS.iter().find(|key| key.variable() == name)
}

/// True if the variable's name begins with a section's.
pub(super) fn is_in_a_section(name: &str) -> bool {
    KEYS.iter().any(|key| {
        let section = format!("TIDINGS_{}_", key.section.to_uppercase());
        name.starts_with(&section)
    })
}

impl Key {
    /// `SECTION.NAME`.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// `TIDINGS_SECTION_NAME`.
    pub(super) fn variable(&self) -> String {
        format!("TIDINGS_{}_{}", self.section, self.name).to_uppercase()
    }

    /// Takes `value`; `None` if it isn't what [`Self::wanted`] says.
    pub(super) fn set(&self, settings: &mut Settings, value: &str) -> Option<()> {
        match &self.kind {
            Kind::Address(field) => *field(settings) = value.parse().ok()?,
            Kind::Count(min, max, field) => {
                *field(settings) = usize::try_from(whole(value, *min, *max)?).ok()?;
            }
            Kind::Count32(min, max, field) => *field(settings) = whole(value, *min, *max)?,
            Kind::Flag(field) => *field(settings) = value.parse().ok()?,
            Kind::Format(field) => *field(settings) = value.parse().ok()?,
            Kind::Millis(min, max, field) => {
                *field(settings) = Duration::from_millis(whole(value, *min, *max)?);
            }
            Kind::OptionalCount(min, max, field) => {
                *field(settings) = Some(whole(value, *min, *max)?);
            }
            Kind::OptionalPath(field) => *field(settings) = Some(path(value)?),
            Kind::Path(field) => *field(settings) = path(value)?,
            Kind::PowerOfTwo(min, max, field) => {
                let number = whole(value, *min, *max).filter(|number| number.is_power_of_two())?;
                *field(settings) = usize::try_from(number).ok()?;
            }
            Kind::Switch(field) => *field(settings) = Some(value.parse().ok()?),
            Kind::Text(field) => *field(settings) = value.to_owned(),
        }
        Some(())
    }

    /// The value in force as TOML; `None` if nothing is set.
    pub(super) fn show(&self, settings: &Settings) -> Option<String> {
        let settings = &mut settings.clone();
        let quoted = |text: String| toml::Value::String(text).to_string();
        Some(match &self.kind {
            Kind::Address(field) => quoted(field(settings).to_string()),
            Kind::Count(_, _, field) | Kind::PowerOfTwo(_, _, field) => field(settings).to_string(),
            Kind::Count32(_, _, field) => field(settings).to_string(),
            Kind::Flag(field) => field(settings).to_string(),
            Kind::Format(field) => quoted(field(settings).as_str().to_owned()),
            Kind::Millis(_, _, field) => field(settings).as_millis().to_string(),
            Kind::OptionalCount(_, _, field) => field(settings).as_ref()?.to_string(),
            Kind::OptionalPath(field) => quoted(field(settings).as_ref()?.display().to_string()),
            Kind::Path(field) => quoted(field(settings).display().to_string()),
            Kind::Switch(field) => field(settings).as_ref()?.to_string(),
            Kind::Text(field) => quoted(field(settings).clone()),
        })
    }

    /// What the value must be.
    pub(super) fn wanted(&self) -> String {
        match &self.kind {
            Kind::Address(_) => "an address and a port such as 127.0.0.1:6309".to_owned(),
            Kind::Count(min, max, _) | Kind::OptionalCount(min, max, _) => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Count32(min, max, _) => format!("a whole number from {min} to {max}"),
            Kind::Format(_) => "\"text\" or \"json\"".to_owned(),
            Kind::Millis(min, max, _) => {
                format!("a whole number of milliseconds from {min} to {max}")
            }
            Kind::OptionalPath(_) | Kind::Path(_) => "a path".to_owned(),
            Kind::PowerOfTwo(min, max, _) => format!("a power of two from {min} to {max}"),
            Kind::Flag(_) | Kind::Switch(_) => "true or false".to_owned(),
            Kind::Text(_) => "a text".to_owned(),
        }
    }

    /// The error of a value that isn't what it must be.
    pub(super) fn refuse(&self, found: &str, place: &str) -> ConfigError {
        ConfigError::Range {
            place: place.to_owned(),
            key: self.full_name(),
            wanted: self.wanted(),
            found: if found.is_empty() {
                "empty".to_owned()
            } else {
                found.to_owned()
            },
        }
    }

    /// The row of `docs/configuration.md`.
    #[cfg(test)]
    pub(super) fn row(&self) -> String {
        let default = self.show(&Settings::default());
        let default = default.map_or_else(|| "unset".to_owned(), |value| format!("`{value}`"));
        format!(
            "| `{}` | `{}` | {default} | {} | {} |",
            self.name,
            self.variable(),
            self.wanted(),
            self.about
        )
    }
}

fn whole<T: FromStr + PartialOrd>(text: &str, min: T, max: T) -> Option<T> {
    let number = text.parse().ok()?;
    (min..=max).contains(&number).then_some(number)
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

impl LogFormat {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

impl FromStr for LogFormat {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(()),
        }
    }
}
