//! The files of a folder, and where each would go.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use wire::DocPath;

use super::Item;

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What can be published, directory by directory.
    pub(super) items: Vec<Item>,
    /// What can't, with the reason.
    pub(super) refused: Vec<(PathBuf, String)>,
    /// How many hidden files and folders were passed over.
    pub(super) hidden: usize,
}

/// Finds the files below `dir`, which go below `prefix`. Links aren't followed: they may lead out
/// of the folder, or round in a circle.
pub(super) fn walk(dir: &Path, prefix: &DocPath) -> Found {
    let mut found = Found::default();
    let mut rest = vec![Item {
        path: prefix.clone(),
        file: dir.to_owned(),
    }];
    while let Some(dir) = rest.pop() {
        let entries = fs::read_dir(&dir.file).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        match entries {
            Ok(entries) => {
                let before = found.items.len();
                for entry in entries {
                    found.take(&entry, &dir.path, &mut rest);
                }
                found.items[before..].sort_unstable();
            }
            Err(error) => found.refused.push((dir.file, error.to_string())),
        }
    }
    found.refused.sort_unstable();
    found
}

impl Found {
    fn take(&mut self, entry: &DirEntry, dir: &DocPath, rest: &mut Vec<Item>) {
        let file = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            self.hidden += 1;
            return;
        }
        match judge(entry, dir) {
            Ok((path, true)) => rest.push(Item { path, file }),
            Ok((path, false)) => self.items.push(Item { path, file }),
            Err(reason) => self.refused.push((file, reason)),
        }
    }
}

/// Where an entry goes and whether it is a folder, or why it goes nowhere.
fn judge(entry: &DirEntry, dir: &DocPath) -> Result<(DocPath, bool), String> {
    let name = entry.file_name();
    let name = name.to_str().ok_or("the name is not UTF-8")?;
    let kind = entry.file_type().map_err(|error| error.to_string())?;
    let path = dir.child(name).map_err(|error| error.to_string())?;
    if kind.is_symlink() {
        return Err("it is a link, and links are not followed".to_owned());
    }
    if kind.is_dir() {
        return Ok((path, true));
    }
    if !kind.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if !name.ends_with(".md") {
        return Err("a document's name ends in .md".to_owned());
    }
    Ok((path, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    // D92
    #[test]
    fn every_file_is_taken_refused_with_a_reason_or_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        for name in ["z.md", "a.md", "b/x.md", "b/c/y.md", ".git/h.md", "p.png"] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc", at("out")).unwrap();
        let found = walk(dir.path(), &DocPath::parse("/wiki").unwrap());
        let paths: Vec<_> = found.items.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(
            paths,
            ["/wiki/a.md", "/wiki/z.md", "/wiki/b/x.md", "/wiki/b/c/y.md"]
        );
        let refused: Vec<_> = found.refused.iter().map(|(file, _)| file).collect();
        assert_eq!(refused, [&at("out"), &at("p.png")]);
        assert_eq!(found.hidden, 1);
    }
}
