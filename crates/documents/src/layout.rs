//! Names in a data directory: where versions, links and our own files lie.

/// The directory beside the documents of a directory that holds their versions.
pub(crate) const VERSIONS_DIR: &str = "versions";
/// The server's own directory at the root: journal, checkpoint, lock, temporary files.
pub(crate) const OWN_DIR: &str = ".tidings";
