//! The Rust client: requests and watches that reconnect from their cursor.
