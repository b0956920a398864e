//! What a worker keeps an alarm for.

use super::slab::Key;

/// Whose alarm it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    Cohort(Key),
    Line(Key),
}
