//! The disk as the system under test sees it.

use std::io;
use std::path::{Path, PathBuf};
use std::process;

use storage::{Entry, File as StorageFile, Lock, LockError, Mode, Refusal, Stat, Storage};

use super::fault::{Call, Crashed};
use super::node::{Body, Dir, File};
use super::{CrashingDisk, State};

impl Storage for CrashingDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_file(path)
    }

    fn create_new(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.begin(Call::CreateNew, path)?;
        let body = Body::File(File::default());
        let inode = state.tree.create(path, body, mode.bits())?;
        Ok(self.handle(path, inode))
    }

    fn open_write(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::CreateDir, path)?;
        let body = Body::Dir(Dir::default());
        state.tree.create(path, body, 0o755).map(drop)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state_past_gate();
        state.faults.begin(Call::SyncDir, path)?;
        state.faults.check_read(path)?;
        let dir = state.tree.dir_at(path)?;
        state.tree.dir_mut(dir).synced();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::Rename, from)?;
        state.faults.check_way(to)?;
        state.tree.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::RenameNew, from)?;
        state.faults.check_way(to)?;
        state.tree.at(from)?;
        match state.tree.at(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => state.tree.rename(from, to),
            Err(error) => Err(error),
        }
    }

    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::Symlink, link)?;
        let body = Body::Symlink(target.to_owned());
        state.tree.create(link, body, 0o777).map(drop)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let state = self.state();
        state.faults.check_read(path)?;
        match &state.tree.nodes[&state.tree.at(path)?].body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::RemoveFile, path)?;
        state.tree.remove(path, false)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin(Call::RemoveDir, path)?;
        state.tree.remove(path, true)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let state = self.state();
        // A file that can't be opened can still be described, unless its directory is closed.
        state.faults.check_read(Path::new(""))?;
        state.faults.check_way(path)?;
        let inode = state.tree.at(path)?;
        Ok(state.tree.nodes[&inode].stat(inode))
    }

    fn read_dir(&self, path: &Path, visit: &mut dyn FnMut(Entry)) -> io::Result<()> {
        // Collected first, for `visit` may call the disk.
        let entries: Vec<_> = {
            let state = self.state();
            state.faults.check_read(path)?;
            let tree = &state.tree;
            let entry = |(name, inode): (&std::ffi::OsString, &u64)| Entry {
                name: name.clone(),
                kind: tree.nodes[inode].stat(*inode).kind,
            };
            let dir = tree.dir(tree.dir_at(path)?);
            dir.live.iter().map(entry).collect()
        };
        entries.into_iter().for_each(visit);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        let mut state = self.begin(Call::Lock, path)?;
        let pid = process::id();
        if !state.locked.insert(path.to_owned()) {
            return Err(LockError::Held { pid: Some(pid) });
        }
        let inode = match state.tree.at(path) {
            Ok(inode) => inode,
            Err(_) => {
                let body = Body::File(File::default());
                state.tree.create(path, body, Mode::Private.bits())?
            }
        };
        state.tree.set_len(inode, 0);
        state.tree.write(inode, 0, format!("{pid}\n").as_bytes())?;
        Ok(Box::new(Held {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }
}

impl CrashingDisk {
    /// Counts an operation and gives the state to do it in.
    fn begin(&self, call: Call, path: &Path) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.state();
        state.faults.begin(call, path)?;
        state.faults.check_way(path)?;
        Ok(state)
    }

    fn open_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let state = self.state();
        state.faults.check_read(path)?;
        let inode = state.tree.at(path)?;
        match state.tree.nodes[&inode].body {
            Body::File(_) => Ok(self.handle(path, inode)),
            Body::Symlink(_) => Err(Refusal::Link.into()),
            Body::Dir(_) | Body::Other => Err(Refusal::NotRegular.into()),
        }
    }

    fn handle(&self, path: &Path, inode: u64) -> Box<dyn StorageFile> {
        Box::new(Handle {
            disk: self.clone(),
            path: path.to_owned(),
            inode,
        })
    }
}

#[derive(Debug)]
struct Handle {
    disk: CrashingDisk,
    /// The name at the time of opening, for the log.
    path: PathBuf,
    inode: u64,
}

impl Handle {
    fn sync(&self, call: Call) -> io::Result<()> {
        let mut state = self.disk.state_past_gate();
        let begun = state.faults.begin(call, &self.path);
        let file = state.tree.file_mut(self.inode);
        match &begun {
            Ok(()) => file.synced(),
            Err(error) if Crashed::is(error) => {}
            Err(_) => file.sync_failed(),
        }
        begun
    }
}

impl StorageFile for Handle {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        state.faults.check_read(Path::new(""))?;
        let content = &state.tree.file(self.inode).live;
        let rest = content.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let was_alive = state.faults.check_read(Path::new("")).is_ok();
        let begun = state.faults.begin(Call::WriteAt, &self.path);
        match begun {
            Ok(()) => state.tree.write(self.inode, offset, bytes),
            Err(error) => {
                if was_alive {
                    // The half may not fit either, which changes nothing about the error.
                    let half = &bytes[..bytes.len() / 2];
                    let _ = state.tree.write(self.inode, offset, half);
                }
                Err(error)
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.faults.begin(Call::SetLen, &self.path)?;
        state.tree.set_len(self.inode, len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(Call::SyncData)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(Call::SyncAll)
    }

    fn stat(&self) -> io::Result<Stat> {
        let state = self.disk.state();
        state.faults.check_read(Path::new(""))?;
        Ok(state.tree.nodes[&self.inode].stat(self.inode))
    }
}

#[derive(Debug)]
struct Held {
    disk: CrashingDisk,
    path: PathBuf,
}

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}
