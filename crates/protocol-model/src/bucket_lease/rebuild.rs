//! A rebuild in progress.

use super::node::Mode;

/// A rebuild, holding the bucket's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rebuild {
    pub(super) node: usize,
    pub(super) epoch: u8,
    pub(super) target: Mode,
    pub(super) identity: u8,
    /// The clock of Redis was a decade ahead when the node surveyed it.
    pub(super) survey_is_far: bool,
    pub(super) stage: Stage,
    /// A tick has passed since the epoch was raised.
    pub(super) has_waited: bool,
    /// A tick has passed since the latest step: only a frozen node lets a further tick pass.
    pub(super) is_due: bool,
    pub(super) is_frozen: bool,
}

/// The latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Raised,
    Begun,
    Filled,
}
