//! Files beneath one root directory, behind a trait that a crashing fake implements too.
