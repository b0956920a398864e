//! Answers kept on disk, so that reading again moves what changed alone (D85).
//!
//! Every read still asks the server: a kept answer only spares its body the way. So nothing out of
//! date is ever served, whatever happens to the files, and a resync needs no clearing. Entries
//! belong to one server, one kind of trust, one token and one path: a closed document never comes
//! out of another reader's entry. An answer is kept only if nothing happened to its entry while it
//! was under way, so a slow one doesn't put an old version back.
//!
//! A directory that is full, gone or not writable costs speed alone. Past [`ENTRIES_MAX`] entries
//! the oldest are removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use wire::{ContentHash, DocPath, Request, Response, Status, Verb};

use crate::client::Client;
use crate::error::Error;
use crate::trust::Trust;

/// The most answers that are kept; at a few kilobytes each they stay below a hundred megabytes.
const ENTRIES_MAX: usize = 8192;

/// How many writes lie between two countings of the entries.
const SWEEP_EVERY: u64 = 256;

/// Kept answers in a directory. Clones share it.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
    shared: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    /// Grows with every entry that is dropped: an answer that was under way then isn't kept.
    generation: AtomicU64,
    writes: AtomicU64,
}

impl Cache {
    /// Keeps answers in `dir`, which is made when there is one to keep.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            shared: Arc::default(),
        }
    }

    /// Asks for what `request` names, with the condition of the kept answer. Cancel safe.
    pub(crate) async fn ask(
        &self,
        client: &Client,
        mut request: Request,
    ) -> Result<Response, Error> {
        let file = self.file(client, request.verb, &request.path);
        let generation = self.shared.generation.load(Ordering::Acquire);
        let kept = read(&file).await;
        let etag = kept.as_ref().and_then(etag_of);
        if let Some(etag) = etag {
            request.metadata.set("if-none-match", etag);
        }
        let answer = client.ask(&request).await?;
        match (answer.status, kept) {
            (Status::NotModified, Some(kept)) => return Ok(kept),
            (Status::Ok, ref kept) if etag_of(&answer).is_some() => {
                let is_current = self.shared.generation.load(Ordering::Acquire) == generation
                    && read(&file).await.as_ref().and_then(etag_of)
                        == kept.as_ref().and_then(etag_of);
                if is_current {
                    self.keep(&file, &answer).await;
                }
            }
            _ => drop(tokio::fs::remove_file(&file).await),
        }
        Ok(answer)
    }

    /// Drops what is kept of the current version of `path`.
    pub(crate) fn forget(&self, client: &Client, path: &DocPath) {
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
        // Gone already, or can't be removed: the server is asked in any case.
        let _ = std::fs::remove_file(self.file(client, Verb::Fetch, path.as_str().as_bytes()));
    }

    async fn keep(&self, file: &Path, answer: &Response) {
        if let Err(error) = self.write(file, answer).await {
            tracing::debug!(file = %file.display(), %error, "answer not kept");
        }
    }

    async fn write(&self, file: &Path, answer: &Response) -> io::Result<()> {
        let writes = self.shared.writes.fetch_add(1, Ordering::Relaxed);
        tokio::fs::create_dir_all(&self.dir).await?;
        // Unlike any other writer's, here or in another process.
        let temporary = file.with_extension(format!("{}-{writes}", std::process::id()));
        tokio::fs::write(&temporary, answer.encode()).await?;
        if let Err(error) = tokio::fs::rename(&temporary, file).await {
            let _ = tokio::fs::remove_file(&temporary).await;
            return Err(error);
        }
        if writes.is_multiple_of(SWEEP_EVERY) {
            self.sweep().await?;
        }
        Ok(())
    }

    /// Removes the oldest entries past the limit.
    async fn sweep(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut dir = tokio::fs::read_dir(&self.dir).await?;
        while let Some(entry) = dir.next_entry().await? {
            let written = entry.metadata().await.and_then(|found| found.modified());
            entries.push((written.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
        entries.sort_unstable();
        let surplus = entries.len().saturating_sub(ENTRIES_MAX);
        for (_, path) in &entries[..surplus] {
            tokio::fs::remove_file(path).await?;
        }
        Ok(())
    }

    /// The file of an entry. Its name is a digest, so a token never shows.
    fn file(&self, client: &Client, verb: Verb, path: &[u8]) -> PathBuf {
        let key = client.key();
        let trust: &[u8] = match key.trust {
            Trust::Anyone => b"anyone",
            Trust::FirstUse(_) => b"first-use",
            Trust::Roots => b"roots",
        };
        let server = key.server.to_string();
        let token = client.token().unwrap_or_default();
        let parts = [
            server.as_bytes(),
            trust,
            token.as_bytes(),
            verb.as_str().as_bytes(),
            path,
        ];
        self.dir
            .join(ContentHash::of(&joined_unambiguously(&parts)).hex())
    }
}

/// Joins parts so that no two lists of parts give the same bytes.
fn joined_unambiguously(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

fn etag_of(response: &Response) -> Option<&str> {
    response.metadata.get("etag")
}

/// The kept answer; `None` if there is none, it can't be read, or a crash cut its body.
async fn read(file: &Path) -> Option<Response> {
    let bytes = tokio::fs::read(file).await.ok()?;
    let kept = Response::decode(&bytes.into()).ok()?;
    let claimed = kept.metadata.get("content-hash").map(ContentHash::parse);
    let is_whole = claimed.is_none_or(|claimed| claimed == Ok(ContentHash::of(&kept.body)));
    (kept.status == Status::Ok && is_whole).then_some(kept)
}
