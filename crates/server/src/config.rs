//! The settings: defaults, then `tidings.toml`, then the environment, then flags.
//!
//! [`keys::all`] lists every key once; reading, printing and `docs/configuration.md` follow from
//! it. A key nobody knows and a value out of its range end the start and name the key, where it
//! was set and what it should be. Nothing falls back to a default in silence.

mod channels;
mod error;
mod key;
mod keys;
mod nearest;
mod secret;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

pub(crate) use channels::ChannelTables;
pub(crate) use error::ConfigError;
pub(crate) use key::LogFormat;
use key::{Key, Shown};
pub(crate) use secret::Secret;

/// The file that is read from the working directory if no other is named.
const DEFAULT_FILE: &str = "tidings.toml";

/// Where Tidings keeps what isn't a document, in the data directory.
const PRIVATE_DIR: &str = ".tidings";

/// Flags that say which files are meant; every command that opens them has these.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FileFlags {
    /// The configuration file [default: tidings.toml, if there is one].
    #[arg(long, value_name = "FILE", env = "TIDINGS_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The data directory: a tree of documents [default: tidings-data].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The tokens file [default: .tidings/tokens.toml in the data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<String>,
}

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The configuration file that was read.
    pub(crate) file: Option<PathBuf>,
    pub(crate) data: PathBuf,
    pub(crate) mark: SocketAddr,
    /// Where HTTP is served, unless it is off.
    pub(crate) http: Option<SocketAddr>,
    /// HTTP is served over TLS.
    pub(crate) tls: bool,
    /// Origins of pages that may use the server from elsewhere.
    pub(crate) origins: Vec<String>,
    /// The build of the application that is current.
    pub(crate) build: Option<String>,
    /// Tokens are taken from `?token=` too.
    pub(crate) query_tokens: bool,
    pub(crate) admin: SocketAddr,
    pub(crate) dev: Option<bool>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) certificate_key: Option<PathBuf>,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    pub(crate) tokens: Option<PathBuf>,
    pub(crate) jwt: Jwt,
    pub(crate) ring_len: usize,
    /// The server isn't ready without them.
    pub(crate) documents_required: bool,
    /// What the process may hold before it takes no more clients; 0 is no bound, `None` follows
    /// the machine.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) limits: quic::Limits,
    pub(crate) web_limits: web::Limits,
    pub(crate) channel_limits: ::channels::Limits,
    pub(crate) channels: ChannelTables,
    /// The keys that somebody set, by their full names.
    pub(crate) configured: BTreeSet<String>,
}

/// Who may issue JSON web tokens, and what these must say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jwt {
    pub(crate) secret: Option<Secret>,
    /// A file with a public key.
    pub(crate) public_key: Option<PathBuf>,
    /// The path or the URL of a JWKS document.
    pub(crate) jwks: Option<String>,
    pub(crate) audience: Option<String>,
    pub(crate) issuer: Option<String>,
}

impl Jwt {
    const fn has_keys(&self) -> bool {
        self.secret.is_some() || self.public_key.is_some() || self.jwks.is_some()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            file: None,
            data: "tidings-data".into(),
            mark: SocketAddr::from(([127, 0, 0, 1], 6309)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 8080))),
            tls: false,
            origins: Vec::new(),
            build: None,
            query_tokens: false,
            admin: SocketAddr::from(([127, 0, 0, 1], 9309)),
            dev: None,
            certificate: None,
            certificate_key: None,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            tokens: None,
            jwt: Jwt::default(),
            ring_len: documents::Config::default().ring_len,
            documents_required: true,
            memory_bytes: None,
            limits: quic::Limits::default(),
            web_limits: web::Limits::default(),
            channel_limits: ::channels::Limits::default(),
            channels: ChannelTables::default(),
            configured: BTreeSet::new(),
        }
    }
}

/// A value given on the command line, with the name of its flag.
pub(crate) struct Flag<'a> {
    flag: &'static str,
    key: &'static str,
    value: Option<&'a str>,
}

impl<'a> Flag<'a> {
    pub(crate) const fn new(flag: &'static str, key: &'static str, value: Option<&'a str>) -> Self {
        Self { flag, key, value }
    }
}

impl Settings {
    /// The settings of a command that only opens files.
    pub(crate) fn of_files(files: &FileFlags) -> Result<Self, ConfigError> {
        Self::load(files, &[], std::env::vars_os())
    }

    /// Reads file, environment and flags, and refuses what can't work together.
    pub(crate) fn load(
        files: &FileFlags,
        flags: &[Flag<'_>],
        environment: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        settings.read_file(files.config.as_deref())?;
        settings.read_environment(environment)?;
        let named = [
            Flag::new("--data", "serve.data", files.data.as_deref()),
            Flag::new("--tokens", "auth.tokens", files.tokens.as_deref()),
        ];
        for Flag { flag, key, value } in named.iter().chain(flags) {
            if let Some(value) = value {
                let key = keys::find(key).expect("every flag stands for a key of the table");
                settings.set(key, value, flag)?;
            }
        }
        settings.check()?;
        Ok(settings)
    }

    /// The directory of everything that isn't a document.
    pub(crate) fn private_dir(&self) -> PathBuf {
        self.data.join(PRIVATE_DIR)
    }

    /// The tokens file, whether or not it is there.
    pub(crate) fn tokens_path(&self) -> PathBuf {
        let default = || self.private_dir().join("tokens.toml");
        self.tokens.clone().unwrap_or_else(default)
    }

    /// The file of places that are closed for reading.
    pub(crate) fn closed_path(&self) -> PathBuf {
        self.private_dir().join("closed.toml")
    }

    /// Origins of pages that may use the server from elsewhere.
    pub(crate) fn origins(&self) -> Result<web::Origins, ConfigError> {
        let texts = self.origins.iter().map(String::as_str);
        Ok(web::Origins::parse(texts)?)
    }

    /// The effective settings as a configuration file.
    pub(crate) fn print(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for key in keys::all() {
            if key.section != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                section = key.section;
                text += &format!("{gap}[{section}]\n");
            }
            let value = match key.show(self) {
                Shown::Hidden => format!("# {} is set and not shown", key.name),
                Shown::Unset => format!("# {} is unset", key.name),
                Shown::Value(value) => format!("{} = {value}", key.name),
            };
            text += &format!("# {}\n{value}\n", key.about);
        }
        text + &self.channels.print()
    }

    fn read_file(&mut self, named: Option<&Path>) -> Result<(), ConfigError> {
        let path = named.unwrap_or_else(|| Path::new(DEFAULT_FILE));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(());
            }
            Err(source) => {
                return Err(ConfigError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        self.file = Some(path.to_owned());
        self.read_text(&path.display().to_string(), &text)
    }

    fn read_text(&mut self, place: &str, text: &str) -> Result<(), ConfigError> {
        let document: toml::Table =
            toml::from_str(text).map_err(|error| ConfigError::syntax(place, text, &error))?;
        for (section, entries) in &document {
            let Some(entries) = entries.as_table() else {
                return Err(ConfigError::unknown(place, section));
            };
            if section == channels::SECTION {
                self.read_channels(place, entries)?;
            } else if keys::is_section(section) {
                self.read_section(place, section, entries)?;
            } else {
                return Err(ConfigError::unknown_section(place, section));
            }
        }
        Ok(())
    }

    fn read_section(
        &mut self,
        place: &str,
        section: &str,
        entries: &toml::Table,
    ) -> Result<(), ConfigError> {
        for (name, value) in entries {
            let full = format!("{section}.{name}");
            if let Some(entries) = value.as_table()
                && keys::is_section(&full)
            {
                self.read_section(place, &full, entries)?;
                continue;
            }
            let key = keys::find(&full).ok_or_else(|| ConfigError::unknown(place, &full))?;
            let refused = || key.refuse("a list or a table", place);
            let plain = match value {
                toml::Value::Array(texts) => key.joined(texts).ok_or_else(refused)?,
                toml::Value::String(text) => text.clone(),
                toml::Value::Table(_) => return Err(refused()),
                other => other.to_string(),
            };
            self.set(key, &plain, place)?;
        }
        Ok(())
    }

    fn read_channels(&mut self, place: &str, entries: &toml::Table) -> Result<(), ConfigError> {
        for (name, table) in entries {
            let Some(table) = table.as_table() else {
                return Err(ConfigError::Channel {
                    name: name.clone(),
                    message: format!("in {place}, it is no table"),
                });
            };
            self.channels.insert(name, table.clone());
        }
        Ok(())
    }

    /// Takes `TIDINGS_SECTION_KEY` of the known sections. Other variables that begin alike are left
    /// alone: container platforms make `TIDINGS_PORT` and its like for a service of our name.
    fn read_environment(
        &mut self,
        environment: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<(), ConfigError> {
        let ours = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok()?;
            (name.starts_with("TIDINGS_") && !value.is_empty()).then_some((name, value))
        };
        let mut variables: Vec<_> = environment.into_iter().filter_map(ours).collect();
        // The short name for the log comes first, so that the full one wins.
        variables.sort_by_key(|(name, _)| (name != LOG_VARIABLE, name.clone()));
        for (name, value) in variables {
            let Some(key) = keys::find_variable(&name) else {
                if ChannelTables::is_variable(&name) {
                    self.set_channel_variable(&name, &value)?;
                } else if keys::is_in_a_section(&name) {
                    return Err(ConfigError::unknown_variable(&name));
                }
                continue;
            };
            let value = value
                .to_str()
                .ok_or_else(|| key.refuse("no UTF-8", &name))?;
            self.set(key, value, &name)?;
        }
        Ok(())
    }

    fn set_channel_variable(
        &mut self,
        name: &str,
        value: &std::ffi::OsStr,
    ) -> Result<(), ConfigError> {
        let is_taken = value
            .to_str()
            .is_some_and(|value| self.channels.set_variable(name, value));
        if is_taken {
            return Ok(());
        }
        let declared: Vec<&str> = self.channels.names().collect();
        Err(ConfigError::ChannelVariable {
            name: name.to_owned(),
            declared: declared.join(", "),
        })
    }

    fn set(&mut self, key: &Key, value: &str, place: &str) -> Result<(), ConfigError> {
        key.set(self, value)
            .ok_or_else(|| key.refuse(value, place))?;
        self.configured.insert(key.full_name());
        Ok(())
    }

    /// What holds where everyone on this machine may do everything: nobody is kept from a large
    /// import by a rate that protects from strangers, unless somebody set one.
    pub(crate) fn relax_for_dev(&mut self) {
        if !self.configured.contains("limits.rate_per_second") {
            self.limits.rate_per_second = 0;
        }
        if !self.configured.contains("limits.web.rate_per_second") {
            self.web_limits.rate_per_second = 0;
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.limits.check()?;
        self.web_limits.check()?;
        self.origins()?;
        self.channels.declarations()?;
        if !self.jwt.has_keys() && (self.jwt.audience.is_some() || self.jwt.issuer.is_some()) {
            return Err(ConfigError::NoKeys);
        }
        if !self.admin.ip().is_loopback() {
            return Err(ConfigError::AdminExposed(self.admin));
        }
        if self.certificate.is_some() != self.certificate_key.is_some() {
            return Err(ConfigError::HalfCertificate);
        }
        Ok(())
    }
}

/// Sets the log filter of every command; `TIDINGS_SERVE_LOG` is the server's own.
pub(crate) const LOG_VARIABLE: &str = "TIDINGS_LOG";

#[cfg(test)]
mod tests;
