//! An append-only record log with group commit.
