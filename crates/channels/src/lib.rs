//! Declared channels.
