//! The tree of documents: what was set aside, names that mislead, directories that others write.
//!
//! Each directory is read once and no file is opened, so a large tree takes seconds. One finding
//! tells of all that is alike and names the first.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Surroundings;
use super::finding::Finding;
use super::names;

const SUBJECT: &str = "tree";

/// The directory of versions beside the documents of a directory.
const VERSIONS_DIR: &str = "versions";

const WRITABLE_BY_ALL: u32 = 0o002;

/// What is alike: how often it was met, and the first of it.
#[derive(Default)]
struct Alike {
    count: usize,
    first: String,
}

impl Alike {
    fn meet(&mut self, what: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = what();
        }
        self.count += 1;
    }

    /// The finding, with the number and the first in place of `N`.
    fn tell(&self, about: &str, mend: &str, found: &mut Vec<Finding>) {
        if self.count > 0 {
            let what = format!("{} {about}, the first: {}", self.count, self.first);
            found.push(Finding::warn(SUBJECT, what, mend));
        }
    }
}

#[derive(Default)]
struct Walk {
    aside: Alike,
    obstacles: Alike,
    twins: Alike,
    wide: Alike,
    unreadable: Alike,
    names: usize,
}

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let root = &around.settings.data;
    let mut walk = Walk::default();
    walk.documents(root, Path::new(""));
    let before = found.len();
    let shown = root.display();
    walk.aside.tell(
        "files set aside, proved by no record",
        &format!(
            "find '{shown}' -name '.v*.aside*'   # look, keep what is of use, remove the rest"
        ),
        found,
    );
    let renaming = "tidings publish NEW < FILE && tidings archive OLD";
    walk.twins.tell(
        "pairs of names are one where case or composition doesn't count",
        renaming,
        found,
    );
    walk.obstacles.tell("names don't travel", renaming, found);
    walk.wide.tell(
        "directories can be written by everyone",
        &format!("find '{shown}' -type d -perm -0002 -exec chmod o-w '{{}}' +"),
        found,
    );
    walk.unreadable.tell(
        "directories can't be read",
        &format!("chown -R \"$USER\" '{shown}'"),
        found,
    );
    if found.len() == before {
        let what = format!("{} names, and nothing strange among them", walk.names);
        found.push(Finding::ok(SUBJECT, what));
    }
}

impl Walk {
    /// A directory of documents; `at` is its place below the root.
    fn documents(&mut self, root: &Path, at: &Path) {
        let Some((mut names, dirs)) = self.read(root, at) else {
            return;
        };
        names.sort_unstable();
        for (one, other) in names::twins(names.iter().map(String::as_str)) {
            self.twins
                .meet(|| format!("/{} and {other}", at.join(one).display()));
        }
        for name in &names {
            if let Some(why) = names::obstacle(name) {
                self.obstacles
                    .meet(|| format!("/{} {why}", at.join(name).display()));
            }
        }
        self.names += names.len();
        for dir in dirs {
            let below = at.join(&dir);
            match dir.as_str() {
                VERSIONS_DIR => self.versions(root, &below),
                _ => self.documents(root, &below),
            }
        }
    }

    /// The directory of versions: one directory a document, in it the versions.
    fn versions(&mut self, root: &Path, at: &Path) {
        let Some((_, dirs)) = self.read(root, at) else {
            return;
        };
        for dir in dirs {
            let below = at.join(dir);
            self.check_mode(root, &below);
            let Ok(entries) = fs::read_dir(root.join(&below)) else {
                self.unreadable.meet(|| below.display().to_string());
                continue;
            };
            let hidden = entries.flatten().map(|entry| entry.file_name());
            for name in hidden.filter(|name| is_aside(&name.to_string_lossy())) {
                self.aside
                    .meet(|| root.join(&below).join(name).display().to_string());
            }
        }
    }

    /// The names in a directory that aren't hidden, and those of them that are directories.
    fn read(&mut self, root: &Path, at: &Path) -> Option<(Vec<String>, Vec<String>)> {
        self.check_mode(root, at);
        let read = list(&root.join(at));
        if read.is_err() {
            self.unreadable.meet(|| root.join(at).display().to_string());
        }
        read.ok()
    }

    fn check_mode(&mut self, root: &Path, at: &Path) {
        let path: PathBuf = root.join(at);
        let mode = fs::symlink_metadata(&path).map(|metadata| metadata.permissions().mode());
        if mode.is_ok_and(|mode| mode & WRITABLE_BY_ALL != 0) {
            self.wide.meet(|| path.display().to_string());
        }
    }
}

fn list(dir: &Path) -> io::Result<(Vec<String>, Vec<String>)> {
    let (mut names, mut dirs) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // No document has a name that isn't UTF-8, and hidden names are nobody's.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            dirs.push(name.clone());
        }
        names.push(name);
    }
    Ok((names, dirs))
}

/// True for what an opening set aside: `.v4.aside`, `.v4.aside-1`.
fn is_aside(name: &str) -> bool {
    name.starts_with(".v") && name.contains(".aside")
}
