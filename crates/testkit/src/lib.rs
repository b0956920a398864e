//! What the tests share: crashing storage, a lossy network, server processes, the silence checker.

pub mod disk;
pub mod link;
pub mod process;
pub mod silence;
pub mod usage;
