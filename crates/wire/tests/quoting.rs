//! The map as the Go programs write it, row by row.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde::Deserialize;
use wire::Metadata;

#[derive(Deserialize)]
struct Row {
    map: BTreeMap<String, String>,
    text: String,
    reads_back_as: Option<BTreeMap<String, String>>,
}

fn rows() -> Vec<Row> {
    let files = [
        include_str!("../testdata/quoting.jsonl"),
        include_str!("../testdata/yaml.jsonl"),
    ];
    let rows: Vec<Row> = files
        .into_iter()
        .flat_map(|file| file.split('\n'))
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rows.len() > 187, "a file of rows is missing");
    rows
}

fn metadata(map: &BTreeMap<String, String>) -> Metadata {
    map.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

// D40
#[test]
fn every_row_of_the_oracle_is_written_byte_for_byte() {
    for row in rows() {
        let mut out = BytesMut::new();
        metadata(&row.map).encode_into(&mut out);
        assert_eq!(
            std::str::from_utf8(&out).unwrap(),
            row.text,
            "{:?}",
            row.map
        );
    }
}

// D40
#[test]
fn every_row_of_the_oracle_reads_back() {
    for row in rows() {
        let expected = metadata(row.reads_back_as.as_ref().unwrap_or(&row.map));
        let text = row.text.as_bytes();
        assert_eq!(
            Metadata::decode(text),
            Ok(expected.clone()),
            "{:?}",
            row.text
        );
        // The LF of the last line may be missing; a literal block that keeps its end needs it.
        if row.text.ends_with("\n\n") {
            continue;
        }
        let without_lf = text.strip_suffix(b"\n").unwrap();
        assert_eq!(Metadata::decode(without_lf), Ok(expected), "{:?}", row.text);
    }
}
