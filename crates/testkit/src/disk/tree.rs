//! Names, and what they lead to.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use storage::{Refusal, UnixNanos};

use super::node::{Body, Dir, File, Node, Rename, Write};

/// The inode of the root, as on most file systems.
pub(super) const ROOT: u64 = 2;

/// The clock of a new disk: some day in 2023, so that no time is negative or zero.
const START: UnixNanos = UnixNanos::from_parts(1_700_000_000, 0);

/// What a path leads to, as a running program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A directory.
    Dir,
    /// A file with its bytes.
    File(Vec<u8>),
    /// Neither of the others.
    Other,
    /// A link with its target.
    Symlink(PathBuf),
}

#[derive(Debug)]
pub(super) struct Tree {
    /// Nodes stay when their last name goes: a handle or a crash may need them.
    pub(super) nodes: BTreeMap<u64, Node>,
    pub(super) capacity: Option<u64>,
    now: UnixNanos,
    next_inode: u64,
    next_rename: u64,
}

impl Tree {
    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            capacity: None,
            now: START,
            next_inode: ROOT,
            next_rename: 0,
        };
        tree.add(Body::Dir(Dir::default()), 0o755);
        tree
    }

    /// An empty tree that goes on with the same clock and numbers.
    pub(super) fn without_nodes(&self) -> Self {
        Self {
            nodes: BTreeMap::new(),
            capacity: self.capacity,
            ..*self
        }
    }

    pub(super) fn copied(&self) -> Self {
        let mut copy = self.without_nodes();
        let image = self.killed();
        let fresh = |inode: u64| match inode {
            ROOT => ROOT,
            other => self.next_inode + other,
        };
        for (inode, node) in image.nodes {
            let body = match node.body {
                Body::Dir(mut dir) => {
                    dir.live
                        .values_mut()
                        .for_each(|inode| *inode = fresh(*inode));
                    dir.synced();
                    Body::Dir(dir)
                }
                other => other,
            };
            let (born, changed) = (copy.now, copy.now);
            let node = Node {
                body,
                born,
                changed,
                ..node
            };
            copy.nodes.insert(fresh(inode), node);
        }
        copy.next_inode = fresh(self.next_inode);
        copy
    }

    pub(super) fn advance(&mut self, by: Duration) {
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.now = UnixNanos::new(self.now.get().saturating_add(nanos));
    }

    pub(super) fn used(&self) -> u64 {
        let len = |node: &Node| match &node.body {
            Body::File(file) if node.names > 0 => file.live.len() as u64,
            _ => 0,
        };
        self.nodes.values().map(len).sum()
    }

    /// The directory that holds the last name of `path`, and that name.
    pub(super) fn parent<'p>(&self, path: &'p Path) -> io::Result<(u64, &'p OsStr)> {
        let mut names = path.components();
        let Some(Component::Normal(name)) = names.next_back() else {
            return Err(Refusal::Outside.into());
        };
        Ok((self.dir_at(names.as_path())?, name))
    }

    /// The directory that `path` leads to.
    pub(super) fn dir_at(&self, path: &Path) -> io::Result<u64> {
        let plain = |component| matches!(component, Component::Normal(_));
        if !path.components().all(plain) {
            return Err(Refusal::Outside.into());
        }
        let mut inode = ROOT;
        for name in path {
            inode = self.child(inode, name)?;
            match self.nodes[&inode].body {
                Body::Dir(_) => {}
                Body::Symlink(_) => return Err(Refusal::Link.into()),
                _ => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(inode)
    }

    /// What `path` leads to, without following a link.
    pub(super) fn at(&self, path: &Path) -> io::Result<u64> {
        if path.as_os_str().is_empty() {
            return Ok(ROOT);
        }
        let (dir, name) = self.parent(path)?;
        self.child(dir, name)
    }

    pub(super) fn child(&self, dir: u64, name: &OsStr) -> io::Result<u64> {
        let found = self.dir(dir).live.get(name).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn dir(&self, inode: u64) -> &Dir {
        match &self.nodes[&inode].body {
            Body::Dir(dir) => dir,
            _ => panic!("inode {inode} was looked up as a directory"),
        }
    }

    pub(super) fn dir_mut(&mut self, inode: u64) -> &mut Dir {
        match self.nodes.get_mut(&inode).map(|node| &mut node.body) {
            Some(Body::Dir(dir)) => dir,
            _ => panic!("inode {inode} was looked up as a directory"),
        }
    }

    pub(super) fn file(&self, inode: u64) -> &File {
        match &self.nodes[&inode].body {
            Body::File(file) => file,
            _ => panic!("inode {inode} was opened as a file"),
        }
    }

    pub(super) fn file_mut(&mut self, inode: u64) -> &mut File {
        match self.nodes.get_mut(&inode).map(|node| &mut node.body) {
            Some(Body::File(file)) => file,
            _ => panic!("inode {inode} was opened as a file"),
        }
    }

    /// Gives a new node a free name.
    pub(super) fn create(&mut self, path: &Path, body: Body, mode: u32) -> io::Result<u64> {
        let (dir, name) = self.parent(path)?;
        if self.child(dir, name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = self.add(body, mode);
        self.dir_mut(dir).set(name, Some(inode), None);
        self.touch_bytes(dir);
        Ok(inode)
    }

    /// Takes a name away.
    pub(super) fn remove(&mut self, path: &Path, is_dir: bool) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let inode = self.child(dir, name)?;
        match &self.nodes[&inode].body {
            Body::Dir(_) if !is_dir => return Err(io::ErrorKind::IsADirectory.into()),
            Body::Dir(removed) if !removed.live.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            Body::Dir(_) => {}
            _ if is_dir => return Err(io::ErrorKind::NotADirectory.into()),
            _ => {}
        }
        self.dir_mut(dir).set(name, None, None);
        self.touch_bytes(dir);
        self.drop_name(inode);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let inode = self.child(from_dir, from_name)?;
        let of_dir = matches!(self.nodes[&inode].body, Body::Dir(_));
        if of_dir && to != from && to.starts_with(from) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Ok(replaced) = self.child(to_dir, to_name) {
            if replaced == inode {
                return Ok(());
            }
            match &self.nodes[&replaced].body {
                Body::Dir(_) if !of_dir => return Err(io::ErrorKind::IsADirectory.into()),
                Body::Dir(dir) if !dir.live.is_empty() => {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
                Body::Dir(_) => {}
                _ if of_dir => return Err(io::ErrorKind::NotADirectory.into()),
                _ => {}
            }
            self.drop_name(replaced);
        }
        let id = self.next_rename;
        self.next_rename += 1;
        let rename = Some(Rename { id, of_dir });
        self.dir_mut(to_dir).set(to_name, Some(inode), rename);
        self.dir_mut(from_dir).set(from_name, None, rename);
        self.touch_bytes(from_dir);
        self.touch_bytes(to_dir);
        self.touch(inode);
        Ok(())
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = offset as usize;
        let len = self.file(inode).live.len();
        let growth = (offset + bytes.len()).saturating_sub(len);
        let fitting = bytes.len() - growth.saturating_sub(self.room(inode)).min(bytes.len());
        if fitting > 0 {
            self.file_mut(inode).write(Write::Bytes {
                offset,
                bytes: bytes[..fitting].to_vec(),
            });
            self.touch_bytes(inode);
        }
        if fitting < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, inode: u64, len: u64) {
        self.file_mut(inode).write(Write::Len(len as usize));
        self.touch_bytes(inode);
    }

    pub(super) fn plant(&mut self, path: &Path, content: &[u8]) {
        self.plant_parents(path);
        match self.at(path) {
            Ok(inode) => *self.file_mut(inode) = File::durable(content.to_vec()),
            Err(_) => {
                let body = Body::File(File::durable(content.to_vec()));
                self.plant_node(path, body);
            }
        }
        let inode = self.at(path).expect("the file was planted above");
        self.touch_bytes(inode);
    }

    pub(super) fn plant_other(&mut self, path: &Path) {
        self.plant_parents(path);
        self.plant_node(path, Body::Other);
    }

    pub(super) fn contents(&self) -> BTreeMap<PathBuf, Found> {
        let mut found = BTreeMap::new();
        let mut open = vec![(PathBuf::new(), ROOT)];
        while let Some((path, dir)) = open.pop() {
            for (name, &inode) in &self.dir(dir).live {
                let path = path.join(name);
                let what = match &self.nodes[&inode].body {
                    Body::Dir(_) => {
                        open.push((path.clone(), inode));
                        Found::Dir
                    }
                    Body::File(file) => Found::File(file.live.clone()),
                    Body::Other => Found::Other,
                    Body::Symlink(target) => Found::Symlink(target.clone()),
                };
                found.insert(path, what);
            }
        }
        found
    }

    fn plant_parents(&mut self, path: &Path) {
        let mut dirs: Vec<_> = path.ancestors().skip(1).collect();
        dirs.reverse();
        for dir in dirs {
            if self.at(dir).is_err() {
                self.plant_node(dir, Body::Dir(Dir::default()));
            }
        }
    }

    /// Adds a node with a name that is durable, without syncing its neighbours.
    fn plant_node(&mut self, path: &Path, body: Body) {
        let inode = self
            .create(path, body, 0o644)
            .expect("a planted path is free");
        let (dir, name) = self.parent(path).expect("a planted path has a parent");
        let dir = self.dir_mut(dir);
        dir.pending.pop();
        dir.durable.insert(name.to_owned(), inode);
    }

    fn add(&mut self, body: Body, mode: u32) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        let node = Node {
            body,
            mode,
            born: self.now,
            modified: self.now,
            changed: self.now,
            names: 1,
        };
        self.nodes.insert(inode, node);
        inode
    }

    /// How many bytes a file may grow by.
    fn room(&self, inode: u64) -> usize {
        match self.capacity {
            Some(capacity) if self.nodes[&inode].names > 0 => {
                capacity.saturating_sub(self.used()) as usize
            }
            _ => usize::MAX,
        }
    }

    fn drop_name(&mut self, inode: u64) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.names -= 1;
        }
        self.touch(inode);
    }

    fn touch(&mut self, inode: u64) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.changed = self.now;
        }
    }

    fn touch_bytes(&mut self, inode: u64) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            (node.modified, node.changed) = (self.now, self.now);
        }
    }
}
