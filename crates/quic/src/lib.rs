//! The Mark face: documents and their watches over QUIC.
