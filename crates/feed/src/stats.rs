//! Counts for the metrics of whoever owns the feed.

use wire::GapReason;

/// What a feed has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Subscriptions that are alive.
    pub subscriptions: usize,
    /// Changes that were published.
    pub published: u64,
    /// Watches that publishing touched: one per change and watch that it concerns.
    pub touched: u64,
    /// Gaps told because a new epoch began.
    pub gaps_epoch: u64,
    /// Gaps told because the source skipped places.
    pub gaps_hole: u64,
    /// Gaps told because the ring overtook the reader.
    pub gaps_lapped: u64,
    /// Cursors refused because they lay above the head.
    pub refused_ahead: u64,
    /// Cursors refused because they were of another epoch.
    pub refused_epoch: u64,
    /// Cursors refused because the changes after them are no longer kept.
    pub refused_too_old: u64,
}

impl Stats {
    pub(crate) const fn count_gap(&mut self, reason: GapReason) {
        match reason {
            GapReason::Epoch => self.gaps_epoch += 1,
            GapReason::Hole => self.gaps_hole += 1,
            // The feed itself tells of no other loss.
            _ => self.gaps_lapped += 1,
        }
    }

    pub(crate) const fn count_refusal(&mut self, reason: GapReason) {
        match reason {
            GapReason::Ahead => self.refused_ahead += 1,
            GapReason::Epoch => self.refused_epoch += 1,
            // A cursor is refused for no other reason.
            _ => self.refused_too_old += 1,
        }
    }
}
