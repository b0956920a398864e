//! What an opening met, for the log and for `tidings doctor`.

use wire::DocPath;

/// What an opening met.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Why a new epoch began, if one did.
    pub new_epoch: Option<String>,
    /// What was changed behind the journal's back.
    pub differences: Vec<Difference>,
    /// The hidden names that files were given because nothing proved them.
    pub set_aside: Vec<String>,
    /// Writes whose version never landed; nobody was told of them.
    pub taken_back: usize,
    /// Documents that can't be served because another document or directory has their place.
    pub displaced: Vec<DocPath>,
}

/// A document that is not as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which document.
    pub path: DocPath,
    /// What happened to it, such as `version 3 was edited`.
    pub what: String,
}

impl Report {
    /// A break in the history counts before a difference in the tree, which is then no news.
    pub(super) fn new(reason: Option<String>, differences: &[Difference]) -> Self {
        let by_hand = differences.first().map(|first| {
            let more = differences.len() - 1;
            format!(
                "{} {}, and {more} more documents changed",
                first.path, first.what
            )
        });
        let differences = match reason {
            Some(_) => Vec::new(),
            None => differences.to_vec(),
        };
        Self {
            new_epoch: reason.or(by_hand),
            differences,
            ..Self::default()
        }
    }
}
