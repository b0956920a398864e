//! How a version gets to disk: the steps of a publish from the bytes to the acknowledgement.
//!
//! 1. The body is written to a temporary file and synced; the link is made as a temporary one, so
//!    that whatever can fail for want of space fails before the commit.
//! 2. The file is moved to `versions/NAME/vN`, which nothing else may have, and that directory is
//!    synced. A record can therefore never name a version that a power cut takes away.
//! 3. The commit: the right is asked again, the record gets its seq and is made durable.
//! 4. The link is moved and its directory synced.
//! 5. Index and feed, in the order of the commits; then the writer is answered.
//!
//! A failure before 3 leaves nothing; one after 3 takes the commit back and leaves nothing. A kill
//! before 3 leaves a file that nothing proves, which the next opening sets aside; after 3 the
//! record proves it, and the next opening moves the link and tells the change.

use std::io;
use std::path::{Path, PathBuf};

use storage::{Kind, Mode, Storage};
use wire::{Cursor, DocPath, Seq};

use crate::commit::Effect;
use crate::dirs::DirError;
use crate::index::{Collision, Description, Standing, VersionEntry};
use crate::layout::{self, Hidden, LinkTarget, Place, VERSIONS_DIR};
use crate::record::{WriteKind, WriteRecord};
use crate::store::Parts;
use crate::temp::Temp;
use crate::undo::Undo;
use crate::version_file::{self, Composed};
use crate::{Change, Op, PublisherMetadata, StillAllowed, WriteError};

/// How often a writer makes a directory again that a failing neighbour removed under its hands.
const ATTEMPTS_MAX: usize = 8;

/// A version that is to be made.
#[derive(Debug)]
pub(crate) struct Landing<'a> {
    pub(crate) op: Op,
    pub(crate) path: &'a DocPath,
    pub(crate) body: &'a [u8],
    pub(crate) metadata: &'a PublisherMetadata,
    /// Keep so many versions, the new one included.
    pub(crate) retention: Option<u64>,
    /// A flat file bears the document's name and is what the body was read from.
    pub(crate) adopts_flat: bool,
    /// The current version and the document's standing.
    pub(crate) before: Option<(VersionEntry, Standing)>,
}

/// A version that was made.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) entry: VersionEntry,
    /// Where it was told.
    pub(crate) cursor: Cursor,
    /// Where the flat file lies that was adopted and that holds something else by now.
    pub(crate) kept: Option<PathBuf>,
}

impl Landing<'_> {
    fn number(&self) -> u64 {
        self.before
            .as_ref()
            .map_or(1, |(current, _)| current.number + 1)
    }

    /// The version that the link leads to so far.
    fn linked(&self) -> Option<u64> {
        match &self.before {
            Some((current, Standing::Archived | Standing::Live)) => Some(current.number),
            Some((_, Standing::Unlinked)) | None => None,
        }
    }

    fn kept_from(&self) -> u64 {
        self.retention
            .map_or(0, |keep| (self.number() + 1).saturating_sub(keep))
    }

    fn record(&self, composed: &Composed) -> WriteRecord {
        WriteRecord {
            change: Change {
                op: self.op,
                path: self.path.clone(),
                version: self.number(),
                hash: composed.content_hash,
                agent: self
                    .metadata
                    .get("agent")
                    .map(|agent| agent.as_str().into()),
            },
            file_hash: composed.file_hash,
            archived: false,
            kind: match self.adopts_flat {
                true => WriteKind::Import,
                false => WriteKind::Version,
            },
            kept_from: self.kept_from(),
            told: Seq::ZERO,
        }
    }
}

impl Parts {
    /// Makes the version durable, readable and told. The caller holds the path's lock.
    pub(crate) fn land(
        &self,
        landing: &Landing<'_>,
        still_allowed: StillAllowed<'_>,
    ) -> Result<Landed, WriteError> {
        let reservation = self.index().reserve(landing.path)?;
        let place = Place::of(landing.path);
        self.check_link(&place, landing)?;
        let number = landing.number();
        let previous = landing
            .before
            .as_ref()
            .map(|(current, _)| current.file_hash);
        let composed = Composed::new(number, previous, landing.metadata, landing.body);

        let mut undo = Undo::new(self);
        let (mut temp, file) = self.temps.write(&composed.bytes, Mode::Public)?;
        let link = self.temps.link(&place.link_text(number))?;
        self.place_version(&mut temp, &place, landing, &mut undo)?;
        let committed = self
            .committer
            .begin(landing.record(&composed), still_allowed)?;
        // From here on `committed` is dropped before `undo`: first the record is taken back.
        let flat = match landing.adopts_flat {
            true => Some(self.move_flat(&place, number, &mut undo)?),
            false => None,
        };
        undo.moved_link(&place, landing.linked());
        link.replace(&place.link())?;
        self.storage.sync_dir(&place.dir)?;
        let entry = composed.entry(&*file)?;
        let description =
            Description::of(landing.path, landing.metadata.clone().into(), landing.body);
        let cursor = committed.tell(Effect::Version(entry.clone(), description))?;
        undo.keep();
        drop(reservation);
        if landing.kept_from() > 0 {
            self.retain(landing.path, &place, landing.kept_from());
        }
        self.checkpoint_if_due();
        let kept = flat.filter(|flat| !self.drop_copy(flat, landing.body));
        Ok(Landed {
            entry,
            cursor,
            kept,
        })
    }

    /// Moves the flat file out of the link's way.
    fn move_flat(
        &self,
        place: &Place,
        number: u64,
        undo: &mut Undo<'_>,
    ) -> Result<PathBuf, WriteError> {
        let to = hide(&*self.storage, &place.link(), place, number, Hidden::Flat)?;
        undo.moved_flat(place, &to);
        Ok(to)
    }

    /// Removes a file that holds nothing but `body`; false if it holds something else or stays.
    fn drop_copy(&self, file: &Path, body: &[u8]) -> bool {
        holds(&*self.storage, file, body) && self.storage.remove_file(file).is_ok()
    }

    /// Moves the temporary file to its place and makes its name durable.
    fn place_version(
        &self,
        temp: &mut Temp,
        place: &Place,
        landing: &Landing<'_>,
        undo: &mut Undo<'_>,
    ) -> Result<(), WriteError> {
        let number = landing.number();
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.ensure_dirs(place, landing, undo)?;
            match temp.place(&place.version(number)) {
                Ok(()) => break,
                Err(error) if attempts == ATTEMPTS_MAX => return Err(error.into()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    set_aside(&*self.storage, place, number)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        undo.placed_version(place, number);
        self.storage.sync_dir(&place.versions())?;
        Ok(())
    }

    fn ensure_dirs(
        &self,
        place: &Place,
        landing: &Landing<'_>,
        undo: &mut Undo<'_>,
    ) -> Result<(), WriteError> {
        let mut made = Vec::new();
        let has_document = landing.before.is_some();
        let is_known = |dir: &Path| {
            has_document && dir.file_name() == Some(place.name.as_ref())
                || dir.ends_with(VERSIONS_DIR)
                || layout::path_of(dir).is_some_and(|path| self.index().is_directory(&path))
        };
        let result = self.dirs.ensure(&place.versions(), &is_known, &mut made);
        undo.made_dirs(made);
        result.map_err(|error| match error {
            DirError::Taken(dir) => self.collision(&dir),
            DirError::Io(error) if error.kind() == io::ErrorKind::NotADirectory => {
                self.collision(&place.dir)
            }
            DirError::Io(error) => error.into(),
        })
    }

    fn collision(&self, dir: &Path) -> WriteError {
        WriteError::Collision {
            path: layout::path_of(dir).unwrap_or_else(DocPath::root),
        }
    }

    /// Looks at what bears the document's name: its own link, nothing, or something in the way.
    fn check_link(&self, place: &Place, landing: &Landing<'_>) -> Result<(), WriteError> {
        let link = place.link();
        let path = landing.path;
        let kind = match self.storage.stat(&link) {
            Ok(stat) => stat.kind,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match kind {
            Kind::File if landing.adopts_flat => Ok(()),
            Kind::File => Err(WriteError::FlatFile { path: path.clone() }),
            Kind::Dir | Kind::Other => Err(WriteError::Collision { path: path.clone() }),
            Kind::Symlink => {
                let text = self.storage.read_link(&link)?;
                match place.parse_link(&text) {
                    LinkTarget::Version(_) => Ok(()),
                    LinkTarget::OldVersion(_) | LinkTarget::Foreign => {
                        Err(foreign_link(path, &text))
                    }
                }
            }
        }
    }

    /// Removes the versions below `kept_from`, oldest first. One that can't be removed stays, and
    /// so do those after it: what is left is always an unbroken tail (D11).
    fn retain(&self, path: &DocPath, place: &Place, kept_from: u64) {
        let old: Vec<u64> = {
            let index = self.index();
            let document = index.document(path);
            document
                .into_iter()
                .flat_map(|document| document.versions())
                .map(|version| version.number)
                .take_while(|number| *number < kept_from)
                .collect()
        };
        let mut removed = Vec::new();
        for number in old {
            match self.storage.remove_file(&place.version(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%path, number, %error, "an old version stays");
                    break;
                }
                Ok(()) | Err(_) => removed.push(number),
            }
        }
        if let Err(error) = self.storage.sync_dir(&place.versions()) {
            tracing::warn!(%path, %error, "old versions may come back after a power cut");
        }
        let mut index = self.index_mut();
        for number in removed {
            index.remove_version(path, number, None);
        }
    }
}

/// Moves the flat file out of the link's way, as an import that was killed would have, and removes
/// it if `version` has its bytes.
pub(crate) fn adopt_flat(storage: &dyn Storage, place: &Place, number: u64) -> io::Result<()> {
    let flat = hide(storage, &place.link(), place, number, Hidden::Flat)?;
    let stored = version_file::read(storage, &place.version(number), number)?;
    if holds(storage, &flat, &stored.body) {
        storage.remove_file(&flat)?;
    }
    Ok(())
}

/// True if the file's bytes are these.
fn holds(storage: &dyn Storage, file: &Path, bytes: &[u8]) -> bool {
    let read = storage
        .open(file)
        .and_then(|file| file.read_all(bytes.len() as u64));
    read.is_ok_and(|read| read == bytes)
}

/// Gives what lies at a version's name a hidden one beside it, which it tells (D53).
pub(crate) fn set_aside(storage: &dyn Storage, place: &Place, number: u64) -> io::Result<PathBuf> {
    let to = hide(
        storage,
        &place.version(number),
        place,
        number,
        Hidden::Aside,
    )?;
    tracing::warn!(from = %place.version(number).display(), to = %to.display(), "set aside");
    Ok(to)
}

/// Moves a file to a hidden name beside the versions; it overwrites nothing.
fn hide(
    storage: &dyn Storage,
    from: &Path,
    place: &Place,
    number: u64,
    why: Hidden,
) -> io::Result<PathBuf> {
    const NAMES_MAX: u32 = 1000;
    for attempt in 0..NAMES_MAX {
        let to = place.hidden(number, why, attempt);
        match storage.rename_new(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| to),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Why a link that isn't ours refuses a write. Where the file system ignores case, it is the link
/// of the document whose name it takes for this one.
fn foreign_link(path: &DocPath, text: &Path) -> WriteError {
    let other = text
        .strip_prefix(VERSIONS_DIR)
        .ok()
        .and_then(|rest| rest.parent()?.to_str())
        .and_then(|name| path.parent()?.child(name).ok());
    match other {
        Some(path) => WriteError::Collision { path },
        None => WriteError::NotFound,
    }
}

/// True if the name, or a directory on the way to it, doesn't exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl From<Collision> for WriteError {
    fn from(collision: Collision) -> Self {
        Self::Collision {
            path: collision.path(),
        }
    }
}
