//! An open file of the operating system.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use super::meta;
use crate::{File, Stat};

/// The standard library's file, for it repeats interrupted calls and knows what a sync takes on
/// each system.
#[derive(Debug)]
pub(super) struct Handle(fs::File);

impl Handle {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(fd.into())
    }
}

impl File for Handle {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, buf, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn stat(&self) -> io::Result<Stat> {
        meta::of_fd(&self.0)
    }
}
