//! The operations on one open file.

use std::fmt::Debug;
use std::io;

use crate::{Refusal, Stat};

/// An open regular file.
///
/// There is no file position: each call says where. The file stays open when its name is moved or
/// removed. All methods may be called from several threads at once.
pub trait File: Send + Sync + Debug {
    /// Reads at most `buf.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`, growing the file if needed.
    ///
    /// After an error any part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to `len` bytes or grows it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length durable, though not the times.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the bytes, the length and the times durable.
    fn sync_all(&self) -> io::Result<()>;

    /// Describes this file, whatever its name is by now.
    fn stat(&self) -> io::Result<Stat>;

    /// Reads the whole file; [`Refusal::TooLong`] if it holds more than `len_max` bytes.
    fn read_all(&self, len_max: u64) -> io::Result<Vec<u8>> {
        let expected = self.stat()?.len;
        if expected > len_max {
            return Err(Refusal::TooLong.into());
        }
        // One byte of room past the expected end tells the end from a file that grew meanwhile.
        let mut bytes = vec![0; usize::try_from(expected).map_err(|_| Refusal::TooLong)? + 1];
        let mut filled = 0;
        loop {
            match self.read_at(filled as u64, &mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if filled as u64 > len_max {
                return Err(Refusal::TooLong.into());
            }
            if filled == bytes.len() {
                bytes.resize(filled * 2, 0);
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}
