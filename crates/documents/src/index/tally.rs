//! How many documents a directory can show, so that an empty one is hidden without a walk.

use super::document::Standing;

/// The documents below a directory that a listing from here could reach: no name on the way is
/// hidden. Rights aren't counted: they differ from reader to reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Live ones.
    pub(super) live: usize,
    /// Archived ones.
    pub(super) archived: usize,
}

impl Tally {
    /// What one document counts for.
    pub(super) fn of(standing: Standing) -> Self {
        Self {
            live: usize::from(standing == Standing::Live),
            archived: usize::from(standing == Standing::Archived),
        }
    }

    /// True if nothing could be shown.
    pub(super) fn is_empty(self, include_archived: bool) -> bool {
        self.live == 0 && !(include_archived && self.archived > 0)
    }

    /// Replaces a part `before` of this sum by `after`.
    pub(super) fn replace(&mut self, before: Self, after: Self) {
        self.live = self.live + after.live - before.live;
        self.archived = self.archived + after.archived - before.archived;
    }
}
