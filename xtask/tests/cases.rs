//! `docs/cases.md` names tests that exist, and no case twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_test_that_a_case_names_exists() {
    let mut faults = Vec::new();
    let mut named = 0;
    for (number, line) in numbered_lines() {
        for (file, function) in tests_in(&line) {
            named += 1;
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            if !has_test(&text, function) {
                faults.push(format!("line {number}: {file} has no test `{function}`"));
            }
        }
    }
    assert!(named > 100, "the page is read: {named} tests are named");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_case_stands_once_and_has_a_proof_or_a_reason() {
    let mut known = BTreeSet::new();
    let mut faults = Vec::new();
    for (number, line) in numbered_lines() {
        let proof = line.rsplit('|').nth(1).unwrap_or_default().trim();
        if line.starts_with("| ") && proof.is_empty() {
            faults.push(format!("line {number}: neither a test nor a reason"));
        }
        for id in ids_in(&line) {
            if !known.insert(id.to_owned()) {
                faults.push(format!("line {number}: {id} stands twice"));
            }
        }
    }
    assert!(known.len() > 200, "the page is read: {} ids", known.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The cases that a line tells of: the first cell of a row, or the items of a list.
fn ids_in(line: &str) -> Vec<&str> {
    let ids = if let Some(row) = line.strip_prefix("| ") {
        row.split('|').next()
    } else if line.starts_with("- ") {
        line.rsplit(": ").next()
    } else {
        None
    };
    let words = ids.unwrap_or_default().split([' ', ',']);
    words.filter(|word| is_id(word)).collect()
}

fn is_id(word: &str) -> bool {
    let digits = word.strip_prefix(['D', 'F', 'L', 'T']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What stands as `` `file::function` `` in a line.
fn tests_in(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    let tests = quoted.filter(|text| text.starts_with("crates/"));
    tests.filter_map(|text| text.split_once("::"))
}

/// True if the function is one that a test attribute, or a property's macro, stands over.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let starts = [format!("fn {function}("), format!("async fn {function}(")];
    let found = lines
        .iter()
        .position(|line| starts.iter().any(|start| line.starts_with(start.as_str())));
    found.is_some_and(|place| {
        let above = lines[..place].iter().rev();
        let mut above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

fn numbered_lines() -> impl Iterator<Item = (usize, String)> {
    let text = fs::read_to_string(root().join("docs/cases.md")).expect("docs/cases.md");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    (1..).zip(lines)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
