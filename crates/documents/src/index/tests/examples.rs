//! What the index shows, one situation at a time.

use std::cell::Cell;

use wire::{ContentHash, DocPath};

use crate::index::fixture::{anyone, description, document, index, path, version};
use crate::index::{Collision, Document, Index, Standing};
use crate::{ListPage, ListRequest};

fn request(after: Option<&str>, page_size: usize) -> ListRequest {
    ListRequest {
        page_size,
        after: after.map(str::to_owned),
        include_archived: false,
    }
}

fn list(index: &Index, dir: &str) -> Vec<String> {
    names(
        &index
            .list(&path(dir), &request(None, 1000), &anyone)
            .unwrap(),
    )
}

/// The names of a page, directories with a slash.
fn names(page: &ListPage) -> Vec<String> {
    let slash = |is_directory: bool| if is_directory { "/" } else { "" };
    page.entries
        .iter()
        .map(|entry| format!("{}{}", entry.name, slash(entry.document.is_none())))
        .collect()
}

fn hash(body: &str) -> ContentHash {
    ContentHash::of(body.as_bytes())
}

fn found(index: &Index, body: &str) -> Option<(String, u64)> {
    found_by(index, body, &anyone)
}

fn found_by(
    index: &Index,
    body: &str,
    can_read: &dyn Fn(&DocPath) -> bool,
) -> Option<(String, u64)> {
    let (document, number) = index.find_hash(hash(body), can_read)?;
    Some((document.path().to_string(), number))
}

#[test]
fn entries_are_in_byte_order_of_names_with_directories_among_them() {
    let index = index(&["/a/x.md", "/a.md", "/a-b.md", "/b.md", "/a0/x.md", "/É.md"]);
    assert_eq!(
        list(&index, "/"),
        ["a/", "a-b.md", "a.md", "a0/", "b.md", "É.md"]
    );
    assert_eq!(list(&index, "/a"), ["x.md"]);
}

// D26
#[test]
fn what_is_hidden_archived_or_empty_is_not_listed() {
    let mut index = index(&[
        "/tea.md",
        "/.x.md",
        "/.git/x.md",
        "/versions/x.md",
        "/only/.hidden.md",
        "/only/versions/a/x.md",
    ]);
    for (at, standing) in [
        ("/old.md", Standing::Archived),
        ("/past/old.md", Standing::Archived),
        ("/gone.md", Standing::Unlinked),
        ("/void/gone.md", Standing::Unlinked),
    ] {
        index
            .insert_document(document(at, standing, &[at]))
            .unwrap();
    }
    assert_eq!(list(&index, "/"), ["tea.md"]);
    let mut all = request(None, 1000);
    all.include_archived = true;
    let page = index.list(&path("/"), &all, &anyone).unwrap();
    assert_eq!(names(&page), ["old.md", "past/", "tea.md"]);
    assert!(page.entries[0].archived);
    // Those who know a name may use it.
    assert_eq!(list(&index, "/.git"), ["x.md"]);
    assert_eq!(list(&index, "/past"), [""; 0]);
}

#[test]
fn a_directory_without_anything_readable_is_as_if_it_were_not_there() {
    let index = index(&["/open/a.md", "/closed/deep/b.md"]);
    let open = |at: &DocPath| at.is_below(&path("/open"));
    let page = |dir: &str| index.list(&path(dir), &request(None, 10), &open);
    assert_eq!(names(&page("/").unwrap()), ["open/"]);
    assert_eq!(page("/closed"), None);
    assert_eq!(page("/closed/deep"), None);
    assert_eq!(page("/nothing"), None);
    assert_eq!(page("/open/a.md"), None);
    let nobody = |_: &DocPath| false;
    let root = index.list(&path("/"), &request(None, 10), &nobody).unwrap();
    assert_eq!((root.entries.len(), root.complete), (0, true));
}

// D22
#[test]
fn a_page_goes_on_after_a_name_that_is_gone_and_past_the_end_is_complete() {
    let index = index(&["/a.md", "/c.md", "/d.md"]);
    let page = |after: &str, size| index.list(&path("/"), &request(Some(after), size), &anyone);
    assert_eq!(names(&page("b.md", 1).unwrap()), ["c.md"]);
    assert!(!page("b.md", 1).unwrap().complete);
    assert!(page("b.md", 2).unwrap().complete);
    assert_eq!(names(&page("a", 9).unwrap()), ["a.md", "c.md", "d.md"]);
    let past = page("d.md", 9).unwrap();
    assert_eq!((past.entries.len(), past.complete), (0, true));
}

// D95
#[test]
fn a_page_of_a_wide_directory_looks_at_the_page_alone() {
    let mut index = Index::new();
    for number in 0..20_000 {
        let at = format!("/wide/{number:05}.md");
        index
            .insert_document(document(&at, Standing::Live, &["same"]))
            .unwrap();
    }
    let asked = Cell::new(0);
    let can_read = |_: &DocPath| {
        asked.set(asked.get() + 1);
        true
    };
    let page = index
        .list(&path("/wide"), &request(Some("15000.md"), 100), &can_read)
        .unwrap();
    assert_eq!(page.entries[0].name, "15001.md");
    assert_eq!(
        asked.take(),
        101,
        "the page and the proof that more follows"
    );
    index
        .list(&path("/"), &request(None, 100), &can_read)
        .unwrap();
    assert_eq!(asked.take(), 1, "one readable document shows its directory");
    index.find_hash(hash("same"), &can_read).unwrap();
    assert_eq!(asked.take(), 1);
}

// D5, D9
#[test]
fn every_version_is_found_by_its_hash() {
    let mut index = Index::new();
    for (number, body) in (1..).zip(["A", "B", "A"]) {
        let said = description("/tea.md", body);
        assert!(index.insert_version(&path("/tea.md"), version(number, body), said));
    }
    assert_eq!(found(&index, "A"), Some(("/tea.md".into(), 3)));
    assert_eq!(found(&index, "B"), Some(("/tea.md".into(), 2)));
    assert!(index.remove_version(&path("/tea.md"), 2, None));
    assert_eq!(found(&index, "B"), None);
    assert!(index.remove_version(&path("/tea.md"), 1, None));
    assert_eq!(found(&index, "A"), Some(("/tea.md".into(), 3)));
    assert!(
        !index.remove_version(&path("/tea.md"), 3, None),
        "the last one stays"
    );
}

// D80
#[test]
fn of_several_holders_the_current_one_with_the_smallest_readable_path_answers() {
    let mut index = Index::new();
    for (at, standing, bodies) in [
        ("/a.md", Standing::Archived, &["same"][..]),
        ("/b.md", Standing::Live, &["same", "other"]),
        ("/c.md", Standing::Live, &["older", "same"]),
        ("/d.md", Standing::Live, &["same"]),
        ("/e.md", Standing::Unlinked, &["lost"]),
    ] {
        index
            .insert_document(document(at, standing, bodies))
            .unwrap();
    }
    assert_eq!(found(&index, "same"), Some(("/c.md".into(), 2)));
    let but = |closed: &'static [&str]| move |at: &DocPath| !closed.contains(&at.as_str());
    let same = |closed| found_by(&index, "same", &but(closed));
    assert_eq!(same(&["/c.md"]), Some(("/d.md".into(), 1)));
    assert_eq!(same(&["/c.md", "/d.md"]), Some(("/a.md".into(), 1)));
    assert_eq!(
        same(&["/a.md", "/c.md", "/d.md"]),
        Some(("/b.md".into(), 1))
    );
    assert_eq!(same(&["/a.md", "/b.md", "/c.md", "/d.md"]), None);
    assert_eq!(found(&index, "lost"), None);
    assert!(index.set_standing(&path("/c.md"), Standing::Archived));
    assert_eq!(found(&index, "same"), Some(("/d.md".into(), 1)));
    assert!(index.set_standing(&path("/c.md"), Standing::Live));
    assert_eq!(found(&index, "same"), Some(("/c.md".into(), 2)));
}

// D33
#[test]
fn a_write_is_refused_where_a_document_or_a_directory_is_in_the_way() {
    let index = index(&["/a.md", "/d.md/x.md"]);
    let collision = |at: &str| index.reserve(&path(at)).unwrap_err();
    assert_eq!(collision("/"), Collision::Root);
    let document = path("/a.md");
    assert_eq!(
        collision("/a.md/b/c.md"),
        Collision::BelowDocument { document }
    );
    let directory = path("/d.md");
    assert_eq!(collision("/d.md"), Collision::OverDirectory { directory });
    for at in ["/a.md", "/d.md/x.md", "/d.md/y.md", "/d.md2", "/a.mdx/y.md"] {
        index.reserve(&path(at)).unwrap();
    }
    assert_eq!(
        collision("/a.md/b.md").to_string(),
        "path collision: /a.md is a document"
    );
}

// D33
#[test]
fn writes_in_flight_are_in_each_others_way() {
    let index = Index::new();
    let first = index.reserve(&path("/n/a.md")).unwrap();
    let again = index.reserve(&path("/n/a.md")).unwrap();
    let beside = index.reserve(&path("/n/a.md-b")).unwrap();
    let collides = |at: &str| index.reserve(&path(at)).is_err();
    assert!(collides("/n/a.md/b.md"));
    assert!(collides("/n"));
    drop(first);
    assert!(collides("/n"));
    drop(again);
    drop(beside);
    index.reserve(&path("/n")).unwrap();
    index.reserve(&path("/n/a.md/b.md")).unwrap();
}

// D35
#[test]
fn no_write_may_lie_where_versions_lie() {
    let index = index(&["/notes/versions/old.md"]);
    for at in [
        "/notes/versions/tea.md.v4",
        "/notes/versions/tea.md/v4.md",
        "/versions",
    ] {
        let refused = index.reserve(&path(at)).unwrap_err();
        assert_eq!(refused.path().name(), "versions", "{at}");
    }
    assert!(index.document(&path("/notes/versions/old.md")).is_some());
    index.reserve(&path("/notes/versions.md")).unwrap();
}

// D68
#[test]
fn a_chain_is_valid_from_the_oldest_version_that_is_there() {
    let chain = |versions: &[u64]| {
        let versions: Vec<_> = versions
            .iter()
            .map(|number| version(*number, "x"))
            .collect();
        let said = description("/x.md", "x");
        Document::new(path("/x.md"), Standing::Live, said, versions)
            .unwrap()
            .chain_is_valid()
    };
    assert!(chain(&[1, 2, 3]));
    assert!(chain(&[5, 3, 4]));
    assert!(!chain(&[1, 2, 5]));
    let mut index = Index::new();
    index
        .insert_document(document("/x.md", Standing::Live, &["1", "2", "3"]))
        .unwrap();
    let mut edited = version(2, "edited");
    edited.file_hash = hash("edited");
    assert!(index.replace_version(&path("/x.md"), edited, None));
    let document = index.document(&path("/x.md")).unwrap();
    assert!(!document.chain_is_valid());
    assert_eq!(document.current().number, 3);
    assert_eq!(found(&index, "edited"), Some(("/x.md".into(), 2)));
    assert_eq!(found(&index, "2"), None);
}

#[test]
fn a_history_is_read_newest_first_below_a_number() {
    let document = document("/x.md", Standing::Live, &["1", "2", "3", "4"]);
    let below = |number| {
        document
            .versions_below(number)
            .map(|version| version.number)
            .collect::<Vec<_>>()
    };
    assert_eq!(below(u64::MAX), [4, 3, 2, 1]);
    assert_eq!(below(3), [2, 1]);
    assert_eq!(below(1), [0; 0]);
    assert_eq!(document.version(5), None);
}

#[test]
fn a_version_that_is_not_the_next_changes_nothing() {
    let mut index = index(&["/a.md"]);
    let said = || description("/a.md", "x");
    assert!(!index.insert_version(&path("/a.md"), version(1, "x"), said()));
    assert!(!index.insert_version(&path("/a.md/b.md"), version(1, "x"), said()));
    assert!(!index.insert_version(&path("/"), version(1, "x"), said()));
    assert_eq!(found(&index, "x"), None);
    assert_eq!(index.len(), 1);
    assert!(!index.set_standing(&path("/b.md"), Standing::Archived));
    assert!(!index.remove_version(&path("/b.md"), 1, None));
}
