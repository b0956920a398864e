//! `tidings edit`: changes a document with an editor.
//!
//! The text lies in a file of its own while it is edited. An unchanged text publishes nothing. The
//! file stays, and is named, whenever its text did not reach the server: after a conflict, a
//! refusal or a lost connection nothing that was typed is lost.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use client::{Client, Document, Draft, Which};
use wire::{ContentHash, DocPath, Status};

use super::connect::Connection;
use super::failure::Failure;
use super::publish;
use super::source::{self, parse_path};

/// The editor where neither `VISUAL` nor `EDITOR` names one.
const EDITOR_DEFAULT: &str = "vi";

/// Arguments of `tidings edit`.
#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// The document; it is made if there is none.
    #[arg(value_parser = parse_path)]
    path: DocPath,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: &EditArgs) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let ended = edit(args, &client).await;
    client.close().await;
    ended
}

async fn edit(args: &EditArgs, client: &Client) -> Result<(), Failure> {
    let before = match client.fetch(&args.path, Which::Current).await {
        Ok(document) => Some(document),
        Err(error) if error.status() == Some(Status::NotFound) => None,
        Err(error) => return Err(error.into()),
    };
    let expected = match &before {
        Some(document) => document
            .version
            .ok_or_else(|| Failure::usage(format!("{} is a directory", args.path)))?,
        None => 0,
    };
    let file = make_file(&args.path, before.as_ref())?;
    run_editor(&file)?;
    let body = source::read_file(&file)?;
    let old = before.as_ref().map(|document| document.content_hash);
    if body.is_empty() && before.is_none() || old == Some(ContentHash::of(&body)) {
        eprintln!("tidings: unchanged, nothing published");
        return remove(&file);
    }
    let kept = |failure: Failure| failure.fix(format!("your text is kept in {}", file.display()));
    source::check(&body, &args.path).map_err(kept)?;
    let draft = Draft {
        body: body.into(),
        expected: Some(expected),
        // A version's metadata replaces the one before; an editor changes the text alone.
        metadata: before.map(|document| document.metadata).unwrap_or_default(),
    };
    let written = client
        .publish(&args.path, &draft)
        .await
        .map_err(|error| kept(error.into()))?;
    remove(&file)?;
    publish::tell(&args.path, &written, args.connection.json)
}

/// Makes a file that nobody else can read, named as the document so that editors know its kind.
fn make_file(path: &DocPath, before: Option<&Document>) -> Result<PathBuf, Failure> {
    let unique =
        getrandom::u64().map_err(|error| Failure::no(format!("no randomness: {error}")))?;
    let dir = std::env::temp_dir().join(format!("tidings-edit-{unique:016x}"));
    DirBuilder::new().mode(0o700).create(&dir)?;
    let file = dir.join(path.name());
    fs::write(&file, before.map_or(&[][..], |document| &document.body))?;
    Ok(file)
}

fn run_editor(file: &Path) -> Result<(), Failure> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|editor| !editor.is_empty())
        .unwrap_or_else(|| EDITOR_DEFAULT.into());
    // A shell reads the variable, as everywhere: it may hold flags.
    let mut script = editor;
    script.push(" \"$1\"");
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg("sh")
        .arg(file)
        .status()?;
    if status.success() {
        return Ok(());
    }
    Err(
        Failure::no(format!("the editor ended with {status}")).fix(format!(
            "nothing was published; your text is kept in {}",
            file.display()
        )),
    )
}

fn remove(file: &Path) -> Result<(), Failure> {
    fs::remove_file(file)?;
    if let Some(dir) = file.parent() {
        fs::remove_dir(dir)?;
    }
    Ok(())
}
