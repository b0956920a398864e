//! The `tidings token` commands as a person meets them.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::path::Path;
use std::process::{Command, Output};

fn token(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidings"))
        .args(["token", "--data"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// D74
#[test]
fn a_place_is_closed_by_its_first_reader_listed_and_opened_by_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let made = token(
        &data,
        &["add", "--read", "/private/**", "--label", "reader"],
    );
    assert_eq!(printed(&made).trim_end().len(), 64);
    assert!(
        said(&made).contains("/private/** was public and is closed"),
        "{}",
        said(&made)
    );
    let listed = printed(&token(&data, &["list"]));
    assert_eq!(
        listed,
        "token\treader\tread /private/**\tpublish nothing\texpires never\n\
         closed\t/private/**\treaders reader\n"
    );
    let held = token(&data, &["open", "/private/**"]);
    assert_eq!(held.status.code(), Some(1));
    assert!(
        said(&held).contains("reader; revoke them first"),
        "{}",
        said(&held)
    );
    let revoked = said(&token(&data, &["revoke", "reader"]));
    assert!(revoked.contains("/private/** stays closed"), "{revoked}");
    assert_eq!(
        printed(&token(&data, &["list"])),
        "closed\t/private/**\treaders nobody\n"
    );
    assert!(token(&data, &["open", "/private/**"]).status.success());
    assert_eq!(
        printed(&token(&data, &["list", "--json"])),
        "{\"closed\":[],\"tokens\":[]}\n"
    );
}

// D76
#[test]
fn a_pattern_that_never_matches_is_refused_with_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let refused = token(&data, &["add", "--read", "private/**"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said(&refused).contains("write `/private/**`"),
        "{}",
        said(&refused)
    );
    assert!(!data.exists());
}

#[test]
fn what_is_not_there_or_good_for_nothing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refusals: [(&[&str], &str); 4] = [
        (&["revoke", "nobody"], "there is no token `nobody`"),
        (
            &["open", "/notes/**"],
            "is not a closed place; closed are: none",
        ),
        (&["add"], "give --read GLOB, --publish GLOB or both"),
        (
            &[
                "add",
                "--publish",
                "/**",
                "--expires",
                "2020-01-01T00:00:00Z",
            ],
            "lies in the past",
        ),
    ];
    for (arguments, expected) in refusals {
        let refused = token(&dir.path().join("data"), arguments);
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains(expected), "{}", said(&refused));
    }
}
