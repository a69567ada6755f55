//! The possible servers of the bucket's live sessions.

/// A possible server of the live sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// The Redis primary at the start.
    Primary,
    /// The replica or the snapshot of the primary.
    Replica,
    /// The PostgreSQL registry.
    Postgres,
}

impl Backend {
    pub(crate) const ALL: [Self; 3] = [Self::Primary, Self::Replica, Self::Postgres];
}
