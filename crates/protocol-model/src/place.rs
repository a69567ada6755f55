//! The servers that can have the bucket's live sessions.

/// A server that can have the live sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The Redis primary at the start.
    Primary,
    /// Its replica, or its snapshot.
    Replica,
    /// The PostgreSQL registry.
    Postgres,
}

impl Place {
    pub(crate) const ALL: [Self; 3] = [Self::Primary, Self::Replica, Self::Postgres];
}
