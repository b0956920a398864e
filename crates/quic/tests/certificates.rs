//! The certificate that is made on the first run, and one that is read again.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use jiff::Timestamp;
use quic::Certificate;
use wire::{Status, Verb};
use world::{World, certificate, limits};

#[test]
fn the_first_run_makes_a_certificate_and_the_next_one_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = certificate(dir.path());
    assert_eq!(certificate(dir.path()).leaf(), first.leaf());
    let mode = fs::metadata(dir.path().join("key.pem"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn half_a_pair_is_made_anew_and_strange_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = certificate(dir.path());
    fs::remove_file(dir.path().join("cert.pem")).unwrap();
    assert_ne!(certificate(dir.path()).leaf(), first.leaf());

    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let other = tempfile::tempdir().unwrap();
    certificate(other.path());
    fs::copy(other.path().join("key.pem"), &key).unwrap();
    let mixed = Certificate::load(&cert, &key).unwrap_err();
    assert_eq!(mixed.to_string(), "use certificate and key");
    fs::write(&cert, "no certificate").unwrap();
    assert!(Certificate::load_or_create(&cert, &key, Timestamp::now()).is_err());
}

#[tokio::test]
async fn a_reload_changes_the_next_handshake_and_no_open_connection() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    let before = world.certificate.leaf();
    fs::write(world.dir.path().join("cert.pem"), "broken").unwrap();
    assert!(world.certificate.reload().is_err());
    assert_eq!(world.certificate.leaf(), before);

    let other = tempfile::tempdir().unwrap();
    certificate(other.path());
    for name in ["cert.pem", "key.pem"] {
        fs::copy(other.path().join(name), world.dir.path().join(name)).unwrap();
    }
    world.certificate.reload().unwrap();
    assert_ne!(world.certificate.leaf(), before);
    // It trusts the leaf in force alone.
    let late = world.dial().await;
    assert_eq!(late.get(Verb::Fetch, "/health").await.status, Status::Ok);
    world.publish("/a.md", "x").await;
    watch.event().await;
    assert_eq!(client.get(Verb::Fetch, "/health").await.status, Status::Ok);
}
