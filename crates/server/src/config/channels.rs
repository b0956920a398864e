//! The channels that the application declares: the tables `[channels.NAME]`.
//!
//! Their names are the application's own, so they are read as they stand and judged as a whole by
//! the declarations themselves; what is wrong is told with the channel's name. A variable
//! `TIDINGS_CHANNELS_NAME_KEY` sets one key of a channel that the file declares, as TOML or, if it
//! is none, as a text: the URL of a back end is another in every place.

use std::collections::BTreeMap;

use channels::{Declaration, Declarations, Spec};
use serde::Deserialize;
use toml::{Table, Value};

use super::ConfigError;

/// The section, and what the variables of its keys begin with.
pub(super) const SECTION: &str = "channels";
const VARIABLES: &str = "TIDINGS_CHANNELS_";

/// The channels as they are written, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChannelTables(BTreeMap<String, Table>);

impl ChannelTables {
    /// Takes the table of one channel.
    pub(super) fn insert(&mut self, name: &str, table: Table) {
        self.0.insert(name.to_owned(), table);
    }

    /// Takes a variable of a key. False if it is for no channel that is declared.
    pub(super) fn set_variable(&mut self, variable: &str, value: &str) -> bool {
        let declared = self.0.iter_mut().find_map(|(name, table)| {
            let prefix = format!("{VARIABLES}{}_", name.replace('-', "_").to_uppercase());
            let key = variable.strip_prefix(&prefix)?;
            Some((table, key.to_lowercase()))
        });
        let Some((table, key)) = declared else {
            return false;
        };
        let plain = || Value::String(value.to_owned());
        let written = toml::from_str::<Table>(&format!("value = {value}"));
        let value = written.ok().and_then(|mut written| written.remove("value"));
        table.insert(key, value.unwrap_or_else(plain));
        true
    }

    /// True if the variable is meant for a channel.
    pub(super) fn is_variable(variable: &str) -> bool {
        variable.starts_with(VARIABLES)
    }

    /// The names of all channels.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What is declared, if all of it is sound.
    pub(crate) fn declarations(&self) -> Result<Declarations, ConfigError> {
        let declared: Result<Vec<Declaration>, ConfigError> = self
            .0
            .iter()
            .map(|(name, table)| declare(name, table))
            .collect();
        Ok(Declarations::new(declared?)?)
    }

    /// The channels as a configuration file has them.
    pub(super) fn print(&self) -> String {
        let section = BTreeMap::from([(SECTION, &self.0)]);
        let text = (!self.0.is_empty()).then(|| toml::to_string(&section));
        let text = text.map(|text| text.expect("what was read as TOML can be written as TOML"));
        text.map_or_else(String::new, |text| format!("\n{text}"))
    }
}

fn declare(name: &str, table: &Table) -> Result<Declaration, ConfigError> {
    let spec = Spec::deserialize(Value::Table(table.clone()));
    let spec = spec.map_err(|error| ConfigError::Channel {
        name: name.to_owned(),
        message: error.message().replace('\n', ", "),
    })?;
    Ok(spec.declare(name)?)
}
