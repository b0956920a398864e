//! The tree of directories: names in byte order, each a directory or a document and never both.

use std::collections::BTreeMap;
use std::collections::btree_map;

use wire::DocPath;

use super::document::Document;
use super::tally::Tally;

/// A directory that holds at least one document at some depth; only the root may be empty.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) children: BTreeMap<Box<str>, Node>,
    pub(super) tally: Tally,
}

/// What a name stands for. Boxed, so that a wide directory's map stays small.
#[derive(Debug)]
pub(super) enum Node {
    Directory(Box<Directory>),
    Document(Box<Document>),
}

/// True for names that are fetched by those who know them and never listed (D26).
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name == super::VERSIONS
}

/// What stands on the way to a path, or at it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'a> {
    /// The directory at the path.
    Directory(&'a Directory),
    /// The document at the path.
    Document(&'a Document),
    /// A document above the path, where a directory would have to be.
    DocumentAbove(&'a Document),
    /// Nothing, and nothing is in the way.
    Nothing,
}

impl Directory {
    pub(super) fn find(&self, path: &DocPath) -> Found<'_> {
        let mut directory = self;
        let mut names = path.segments();
        while let Some(name) = names.next() {
            match directory.children.get(name) {
                Some(Node::Directory(next)) => directory = next,
                Some(Node::Document(document)) if names.next().is_none() => {
                    return Found::Document(document);
                }
                Some(Node::Document(document)) => return Found::DocumentAbove(document),
                None => return Found::Nothing,
            }
        }
        Found::Directory(directory)
    }

    /// Puts `document` at its path; gives it back if a document or a directory is in the way.
    pub(super) fn insert(&mut self, document: Box<Document>) -> Result<(), Box<Document>> {
        if document.path().is_root() || !matches!(self.find(document.path()), Found::Nothing) {
            return Err(document);
        }
        let path = document.path().clone();
        let tally = document.tally();
        let mut directory = &mut *self;
        let mut names = path.segments().peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                directory
                    .children
                    .insert(name.into(), Node::Document(document));
                break;
            }
            let node = directory
                .children
                .entry(name.into())
                .or_insert_with(|| Node::Directory(Box::default()));
            let Node::Directory(next) = node else {
                unreachable!("no document lies above a path where nothing was found");
            };
            directory = next;
        }
        self.count(&path, Tally::default(), tally);
        Ok(())
    }

    /// Changes the document at `path` in place.
    pub(super) fn update<R>(
        &mut self,
        path: &DocPath,
        change: impl FnOnce(&mut Document) -> R,
    ) -> Option<R> {
        let document = self.document_mut(path)?;
        let before = document.tally();
        let result = change(document);
        let after = document.tally();
        if before != after {
            self.count(path, before, after);
        }
        Some(result)
    }

    fn document_mut(&mut self, path: &DocPath) -> Option<&mut Document> {
        let mut directory = self;
        let mut names = path.segments();
        loop {
            match directory.children.get_mut(names.next()?)? {
                Node::Directory(next) => directory = next,
                Node::Document(document) => {
                    return names.next().is_none().then_some(&mut **document);
                }
            }
        }
    }

    /// Replaces what the document at `path` counts for in the directories that can show it:
    /// those below the last hidden name of the path.
    fn count(&mut self, path: &DocPath, before: Tally, after: Tally) {
        let mut hidden = path.segments().filter(|name| is_hidden(name)).count();
        let mut directory = self;
        for name in path.segments() {
            if hidden == 0 {
                directory.tally.replace(before, after);
            }
            hidden -= usize::from(is_hidden(name));
            match directory.children.get_mut(name) {
                Some(Node::Directory(next)) => directory = next,
                Some(Node::Document(_)) | None => return,
            }
        }
    }
}

/// Every document below a directory, in byte order of names at each level.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// The directories that are open, the deepest last. A stack, because a path may be two
    /// thousand names deep.
    open: Vec<btree_map::Iter<'a, Box<str>, Node>>,
    /// Leaves out hidden names and directories that have nothing to show.
    listed_alone: bool,
}

impl<'a> Walk<'a> {
    /// Everything.
    pub(super) fn all(directory: &'a Directory) -> Self {
        Self {
            open: vec![directory.children.iter()],
            listed_alone: false,
        }
    }

    /// What no hidden name keeps from being listed, live or archived.
    pub(super) fn listed(directory: &'a Directory) -> Self {
        Self {
            open: vec![directory.children.iter()],
            listed_alone: true,
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a Document;

    fn next(&mut self) -> Option<&'a Document> {
        loop {
            let Some((name, node)) = self.open.last_mut()?.next() else {
                self.open.pop();
                continue;
            };
            match node {
                Node::Document(document) => {
                    if !(self.listed_alone && document.is_hidden()) {
                        return Some(document);
                    }
                }
                Node::Directory(directory) => {
                    let skipped = is_hidden(name) || directory.tally.is_empty(true);
                    if !(self.listed_alone && skipped) {
                        self.open.push(directory.children.iter());
                    }
                }
            }
        }
    }
}
