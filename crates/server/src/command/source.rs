//! What is written, read from a file or from stdin, and what is said of it.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use wire::{DocPath, Metadata, limits};

use super::failure::Failure;

/// The document that a write is about, and where its text comes from.
#[derive(Args, Debug)]
pub(crate) struct Source {
    /// The document, such as /notes/tea.md.
    #[arg(value_name = "PATH", value_parser = parse_path)]
    pub(crate) path: DocPath,
    /// The file with the text; stdin if it is missing or -.
    file: Option<PathBuf>,
}

/// What is said of a version.
#[derive(Args, Debug)]
pub(crate) struct Description {
    /// A tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The title; the first heading counts if this is missing.
    #[arg(long)]
    title: Option<String>,
    /// Who writes, as watchers will see it.
    #[arg(long)]
    agent: Option<String>,
    /// Anything else; may be repeated.
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = parse_pair)]
    others: Vec<(String, String)>,
}

impl Source {
    /// Reads the text. An empty one is refused: on the wire it means something else (D12).
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        let body = match &self.file {
            Some(file) if file.as_os_str() != "-" => {
                let opened = File::open(file).and_then(read_bounded);
                opened.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?
            }
            _ => read_stdin()?,
        };
        check(&body, &self.path)?;
        Ok(body)
    }
}

/// Refuses a text that is no document, before it is sent.
pub(crate) fn check(body: &[u8], path: &DocPath) -> Result<(), Failure> {
    if body.is_empty() {
        return Err(
            Failure::usage("the text is empty, and a document is not").fix(format!(
                "put the document away with `tidings archive {path}`"
            )),
        );
    }
    if body.len() > limits::BODY_LEN_MAX {
        let max = limits::BODY_LEN_MAX;
        return Err(Failure::usage(format!(
            "the text is longer than {max} bytes, which is the most a document has"
        )));
    }
    Ok(())
}

fn read_stdin() -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        eprintln!("tidings: reading from the terminal; Ctrl-D ends the text");
    }
    read_bounded(stdin.lock())
}

/// Reads one byte more than a document has at most, so that a longer one shows.
fn read_bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let most = limits::BODY_LEN_MAX as u64 + 1;
    source.take(most).read_to_end(&mut body)?;
    Ok(body)
}

/// Reads a file as [`Source::read`] does, without judging it.
pub(crate) fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    File::open(file).and_then(read_bounded)
}

impl Description {
    /// The metadata that the flags say.
    pub(crate) fn metadata(&self) -> Metadata {
        let others = self.others.iter().cloned();
        let mut metadata: Metadata = others.collect();
        if !self.tags.is_empty() {
            metadata.set("tags", self.tags.join(","));
        }
        if let Some(title) = &self.title {
            metadata.set("title", title);
        }
        if let Some(agent) = &self.agent {
            metadata.set("agent", agent);
        }
        metadata
    }
}

/// Reads a path argument. One without its slash is usually meant to begin with it.
pub(crate) fn parse_path(text: &str) -> Result<DocPath, String> {
    DocPath::parse(text).map_err(|error| format!("{error}; write it as /notes/tea.md"))
}

/// Reads `key=value`. Keys that mean something to the protocol are given by their own flags.
fn parse_pair(text: &str) -> Result<(String, String), String> {
    /// What a write's metadata says to the server instead of the reader.
    const CONTROL_KEYS: [&str; 4] = [
        "auth",
        "expected-version",
        "if-modified-since",
        "if-none-match",
    ];
    let (key, value) = text
        .split_once('=')
        .ok_or("write it as key=value, such as importance=0.8")?;
    if CONTROL_KEYS.contains(&key) {
        return Err(format!("{key} is the protocol's own"));
    }
    Ok((key.to_owned(), value.to_owned()))
}
