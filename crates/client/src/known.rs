//! The file of known servers: which certificate each showed at the first meeting.
//!
//! One line a server, `host:port how`, where `how` is `sha256-<hex>` of the certificate or the word
//! `roots` for a server that the system's roots have vouched for. Lines are only ever appended,
//! each with one write, so two programs that meet a server at once leave two whole lines; the first
//! line of a server counts. Nothing is trusted that could not be written down first: a pin that is
//! forgotten would be no check at all.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wire::ContentHash;

use crate::address::ServerAddress;

/// The most of the file that is read: some ten thousand servers of a hundred bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// How a server proved itself before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// With exactly this certificate.
    Pinned(ContentHash),
    /// With a certificate that the system's roots vouch for.
    Roots,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(hash) => hash.fmt(f),
            Self::Roots => f.write_str("roots"),
        }
    }
}

/// The servers that were met before, by name. A cheap handle on a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownServers {
    file: PathBuf,
}

impl KnownServers {
    /// Keeps the servers in `file`, which is made at the first meeting.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// How `server` proved itself at the first meeting; `None` if it was never met.
    ///
    /// A line that can't be read is passed over: it names no server, so it vouches for none.
    pub fn proof(&self, server: &ServerAddress) -> io::Result<Option<Proof>> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(FILE_LEN_MAX).read_to_string(&mut text)?;
        let name = server.to_string();
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(of, _)| *of == name)
            .find_map(|(_, how)| parse_proof(how.trim())))
    }

    /// Writes down how `server` proved itself.
    pub fn remember(&self, server: &ServerAddress, proof: Proof) -> io::Result<()> {
        if let Some(dir) = self.file.parent() {
            fs::create_dir_all(dir)?;
        }
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.file)?
            .write_all(format!("{server} {proof}\n").as_bytes())
    }
}

fn parse_proof(how: &str) -> Option<Proof> {
    if how == "roots" {
        return Some(Proof::Roots);
    }
    ContentHash::parse(how).ok().map(Proof::Pinned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_server_counts() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownServers::new(dir.path().join("a/known_servers"));
        let (here, there) = (ServerAddress::new("h", 1), ServerAddress::new("::1", 2));
        assert_eq!(known.proof(&here).unwrap(), None);
        let first = Proof::Pinned(ContentHash::of(b"one"));
        known.remember(&here, first).unwrap();
        known
            .remember(&here, Proof::Pinned(ContentHash::of(b"two")))
            .unwrap();
        known.remember(&there, Proof::Roots).unwrap();
        assert_eq!(known.proof(&here).unwrap(), Some(first));
        assert_eq!(known.proof(&there).unwrap(), Some(Proof::Roots));
    }

    #[test]
    fn lines_that_say_nothing_vouch_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known");
        fs::write(&file, "# note\nh:1 sha256-short\nh:1\n\nh:11 roots\n").unwrap();
        let known = KnownServers::new(file);
        assert_eq!(known.proof(&ServerAddress::new("h", 1)).unwrap(), None);
    }
}
