//! One page of a directory, as one reader may see it.

use std::ops::Bound;

use super::document::Document;
use super::tree::{Directory, Node, Walk, is_hidden};
use crate::{CanRead, ListEntry, ListPage, ListRequest};

/// Cuts a page out of `directory`. The cost is that of the names on the page and of those that
/// are passed over because this reader may not see them.
pub(super) fn cut(directory: &Directory, request: &ListRequest, can_read: CanRead<'_>) -> ListPage {
    let start = request
        .after
        .as_deref()
        .map_or(Bound::Unbounded, Bound::Excluded);
    let mut visible = directory
        .children
        .range::<str, _>((start, Bound::Unbounded))
        .filter(|(name, _)| !is_hidden(name))
        .filter_map(|(name, node)| entry(name, node, request.include_archived, can_read));
    let entries = visible.by_ref().take(request.page_size).collect();
    ListPage {
        entries,
        complete: visible.next().is_none(),
    }
}

/// The entry of `node` for this reader; `None` if it isn't shown.
fn entry(
    name: &str,
    node: &Node,
    include_archived: bool,
    can_read: CanRead<'_>,
) -> Option<ListEntry> {
    let shows = |document: &Document| {
        (document.is_live() || include_archived && document.is_archived())
            && can_read(document.path())
    };
    let document = match node {
        Node::Document(document) => shows(document).then_some(Some(document))?,
        Node::Directory(directory) => {
            let shown =
                !directory.tally.is_empty(include_archived) && Walk::listed(directory).any(shows);
            shown.then_some(None)?
        }
    };
    Some(ListEntry {
        name: name.to_owned(),
        document: document.map(|document| {
            let current = document.current();
            (current.number, current.content_hash)
        }),
        archived: document.is_some_and(|document| document.is_archived()),
    })
}
