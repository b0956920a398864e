//! One key: its place, what it may hold, how it is read, shown and documented.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::secret::{SECRET_LEN_MIN, Secret};
use super::{ConfigError, Settings};

pub(super) type Field<T> = fn(&mut Settings) -> &mut T;

/// One key: where it stands, what it may hold, and the field it sets.
pub(crate) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    kind: Kind,
    pub(super) about: &'static str,
}

/// What a key may hold.
pub(super) enum Kind {
    Address(Field<SocketAddr>),
    Count(u64, u64, Field<usize>),
    Count32(u32, u32, Field<u32>),
    Format(Field<LogFormat>),
    Flag(Field<bool>),
    /// Texts: a list in the file, with commas elsewhere.
    List(Field<Vec<String>>),
    /// An address, or `off`.
    Listener(Field<Option<SocketAddr>>),
    Millis(u64, u64, Field<Duration>),
    OptionalCount(u64, u64, Field<Option<u64>>),
    OptionalPath(Field<Option<PathBuf>>),
    OptionalText(Field<Option<String>>),
    Path(Field<PathBuf>),
    PowerOfTwo(u64, u64, Field<usize>),
    Secret(Field<Option<Secret>>),
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

/// What turns a listener off.
const OFF: &str = "off";

const ADDRESS: &str = "an address and a port such as 127.0.0.1:6309";

pub(super) const fn key(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    about: &'static str,
) -> Key {
    Key {
        section,
        name,
        kind,
        about,
    }
}

/// A value as it is printed.
pub(super) enum Shown {
    /// It is set, and nobody's business.
    Hidden,
    /// Nothing is set.
    Unset,
    /// The value as TOML.
    Value(String),
}

impl Key {
    /// `SECTION.NAME`.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// `TIDINGS_SECTION_NAME`.
    pub(super) fn variable(&self) -> String {
        let full_name = format!("TIDINGS_{}_{}", self.section, self.name);
        full_name.replace('.', "_").to_uppercase()
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
            Kind::List(field) => {
                let texts = value.split(',').map(str::trim);
                let given = texts.filter(|text| !text.is_empty());
                *field(settings) = given.map(str::to_owned).collect();
            }
            Kind::Listener(field) => {
                let is_off = value == OFF;
                let address = (!is_off).then(|| value.parse()).transpose();
                *field(settings) = address.ok()?;
            }
            Kind::Millis(min, max, field) => {
                *field(settings) = Duration::from_millis(whole(value, *min, *max)?);
            }
            Kind::OptionalCount(min, max, field) => {
                *field(settings) = Some(whole(value, *min, *max)?);
            }
            Kind::OptionalPath(field) => *field(settings) = Some(path(value)?),
            Kind::OptionalText(field) => {
                *field(settings) = Some((!value.is_empty()).then(|| value.to_owned())?);
            }
            Kind::Path(field) => *field(settings) = path(value)?,
            Kind::PowerOfTwo(min, max, field) => {
                let number = whole(value, *min, *max).filter(|number| number.is_power_of_two())?;
                *field(settings) = usize::try_from(number).ok()?;
            }
            Kind::Secret(field) => *field(settings) = Some(Secret::new(value)?),
            Kind::Switch(field) => *field(settings) = Some(value.parse().ok()?),
            Kind::Text(field) => *field(settings) = value.to_owned(),
        }
        Some(())
    }

    /// The value in force.
    pub(super) fn show(&self, settings: &Settings) -> Shown {
        let is_hidden = match &self.kind {
            Kind::Secret(field) => field(&mut settings.clone()).is_some(),
            _ => false,
        };
        match self.value(settings) {
            _ if is_hidden => Shown::Hidden,
            Some(value) => Shown::Value(value),
            None => Shown::Unset,
        }
    }

    /// The value in force as TOML; `None` if nothing is set, or it is a secret.
    fn value(&self, settings: &Settings) -> Option<String> {
        let settings = &mut settings.clone();
        let quoted = |text: String| toml::Value::String(text).to_string();
        Some(match &self.kind {
            Kind::Address(field) => quoted(field(settings).to_string()),
            Kind::Count(_, _, field) | Kind::PowerOfTwo(_, _, field) => field(settings).to_string(),
            Kind::Count32(_, _, field) => field(settings).to_string(),
            Kind::Flag(field) => field(settings).to_string(),
            Kind::Format(field) => quoted(field(settings).as_str().to_owned()),
            Kind::List(field) => toml::Value::from(field(settings).clone()).to_string(),
            Kind::Listener(field) => {
                let address = field(settings).map(|address| address.to_string());
                quoted(address.unwrap_or_else(|| OFF.to_owned()))
            }
            Kind::Millis(_, _, field) => field(settings).as_millis().to_string(),
            Kind::OptionalCount(_, _, field) => field(settings).as_ref()?.to_string(),
            Kind::OptionalPath(field) => quoted(field(settings).as_ref()?.display().to_string()),
            Kind::OptionalText(field) => quoted(field(settings).clone()?),
            Kind::Path(field) => quoted(field(settings).display().to_string()),
            Kind::Secret(_) => return None,
            Kind::Switch(field) => field(settings).as_ref()?.to_string(),
            Kind::Text(field) => quoted(field(settings).clone()),
        })
    }

    /// The texts of a list as they stand in one text; `None` if no list is taken.
    pub(super) fn joined(&self, texts: &[toml::Value]) -> Option<String> {
        let Kind::List(_) = self.kind else {
            return None;
        };
        let texts: Option<Vec<&str>> = texts.iter().map(toml::Value::as_str).collect();
        texts.map(|texts| texts.join(","))
    }

    /// What the value must be.
    pub(super) fn wanted(&self) -> String {
        match &self.kind {
            Kind::Address(_) => ADDRESS.to_owned(),
            Kind::Count(min, max, _) | Kind::OptionalCount(min, max, _) => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Count32(min, max, _) => format!("a whole number from {min} to {max}"),
            Kind::Format(_) => "\"text\" or \"json\"".to_owned(),
            Kind::List(_) => "a list of texts, in a variable with commas".to_owned(),
            Kind::Listener(_) => format!("{ADDRESS}, or \"{OFF}\""),
            Kind::Millis(min, max, _) => {
                format!("a whole number of milliseconds from {min} to {max}")
            }
            Kind::OptionalPath(_) | Kind::Path(_) => "a path".to_owned(),
            Kind::PowerOfTwo(min, max, _) => format!("a power of two from {min} to {max}"),
            Kind::Secret(_) => format!("a text of at least {SECRET_LEN_MIN} bytes"),
            Kind::Flag(_) | Kind::Switch(_) => "true or false".to_owned(),
            Kind::OptionalText(_) | Kind::Text(_) => "a text".to_owned(),
        }
    }

    /// The error of a value that isn't what it must be.
    pub(super) fn refuse(&self, found: &str, place: &str) -> ConfigError {
        ConfigError::Range {
            place: place.to_owned(),
            key: self.full_name(),
            wanted: self.wanted(),
            found: match self.kind {
                _ if found.is_empty() => "empty".to_owned(),
                Kind::Secret(_) => "what was set".to_owned(),
                _ => found.to_owned(),
            },
        }
    }

    /// The row of `docs/configuration.md`.
    #[cfg(test)]
    pub(super) fn row(&self) -> String {
        let default = self.value(&Settings::default());
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
