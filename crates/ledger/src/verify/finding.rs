//! Violations found in a log, and their places.

use std::fmt;

use seatkeeper_core::{Holder, PoolId, SessionId};

use crate::audit::Stream;

/// The first violation found by a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The pool.
    pub pool: PoolId,
    /// The place in the pool.
    pub place: BreachSite,
    /// The violation.
    pub breach: Breach,
}

/// The place of a violation in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreachSite {
    /// A record.
    Record {
        /// The record's stream.
        stream: Stream,
        /// The record's number in the stream.
        seq: u64,
        /// The record's place in the whole log.
        id: u64,
    },
    /// A row of table `sessions`.
    Session(SessionId),
    /// The pool as a whole.
    Pool,
}

/// A violation of the log's rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// A record is missing or duplicated.
    #[error("the next record should be number {expected}")]
    Gap {
        /// The expected number.
        expected: u64,
    },
    /// A record is older than its predecessor.
    #[error("the record is older than the record before it")]
    TimeRanBack,
    /// A record lacks a field required by its action, or its stream does not allow the action.
    #[error("the record lacks a field of its action, or its stream does not take the action")]
    Malformed,
    /// The version of a license does not follow the version before.
    #[error("the record has version {version}, which does not follow version {newest}")]
    VersionSkips {
        /// The record's version.
        version: u64,
        /// The version before the record; 0 without a version.
        newest: u64,
    },
    /// A plan's or subscription's version is not newer than its predecessor.
    #[error("the record has version {version}, and an earlier record has version {newest}")]
    VersionRanBack {
        /// The record's version.
        version: u64,
        /// The newest version before the record.
        newest: u64,
    },
    /// An admission used terms not in force at the time of the admission.
    #[error("the admission used version {version} of the terms, which was not in force at the time")]
    NotInForce {
        /// The version of the terms.
        version: u64,
    },
    /// An admission left more live sessions than its limit.
    #[error("the admission left {live} live sessions, and the limit was {limit}")]
    AboveLimit {
        /// Live sessions after the admission.
        live: u64,
        /// The limit.
        limit: u32,
    },
    /// The limit in a record is not the limit granted by the entitlement.
    #[error("the record has limit {limit}, and version {version} of the entitlement granted {}", granted_text(*.granted))]
    LimitNotGranted {
        /// The limit in the record.
        limit: u32,
        /// The version in the record.
        version: u64,
        /// The limit granted by the version, if on record.
        granted: Option<u32>,
    },
    /// An admission used older terms than an earlier admission.
    #[error("the admission used version {version} of the terms after an admission by version {newest}")]
    OlderTerms {
        /// The version of the terms.
        version: u64,
        /// The newest version used before.
        newest: u64,
    },
    /// The number of live sessions in a record is not the number counted by the replay.
    #[error("the record has {told} live sessions, and the records up to it leave {counted}")]
    LiveMiscounted {
        /// The number in the record.
        told: u32,
        /// The number counted by the replay.
        counted: u64,
    },
    /// A session began a second time.
    #[error("session {session} began before")]
    BeganAgain {
        /// The session.
        session: SessionId,
    },
    /// A holder was admitted while already holding a session.
    #[error("{holder:?} holds session {session} already")]
    HolderIsIn {
        /// The holder.
        holder: Holder,
        /// The session already held.
        session: SessionId,
    },
    /// A session ended without a beginning, or with a different holder.
    #[error("session {session} of this holder never began")]
    NeverBegan {
        /// The session.
        session: SessionId,
    },
    /// A session ended a second time.
    #[error("session {session} ended before")]
    EndedAgain {
        /// The session.
        session: SessionId,
    },
    /// A session ended as expired before its expiry.
    #[error("session {session} expired before its time was over")]
    ExpiredEarly {
        /// The session.
        session: SessionId,
    },
    /// A claim was denied as "full" while a seat was free.
    #[error("the claim was denied as full with {live} live sessions, and the limit was {limit}")]
    DeniedWithSeatsFree {
        /// Live sessions.
        live: u64,
        /// The limit.
        limit: u32,
    },
    /// The number of admissions kept at a cut is not the number of sessions live at the cut.
    #[error("{told} sessions were live at the cut of the history, and the admissions of {kept} are kept")]
    CutMiscounted {
        /// Sessions live at the cut.
        told: u32,
        /// Admissions kept.
        kept: u64,
    },
    /// A stream's last record is not its head: records at the end are missing or were added.
    #[error("the {stream} stream ends at record {recorded}, and its head is {head}")]
    HeadDiffers {
        /// The stream.
        stream: Stream,
        /// The number of the stream's last record; 0 without records.
        recorded: u64,
        /// The number of the last record ever appended; 0 if unknown.
        head: u64,
    },
    /// A row of table `sessions` has no record.
    #[error("no record of the log names the session")]
    NotOnRecord,
    /// A row of table `sessions` differs from the log.
    #[error("the row differs from the log's account of the session")]
    Differs,
    /// Sessions on record are missing from table `sessions`.
    #[error("{missing} sessions on record are not in the table of sessions")]
    SessionsMissing {
        /// The number of missing sessions.
        missing: u64,
    },
}

fn granted_text(granted: Option<u32>) -> String {
    granted.map_or("no limit on record".to_owned(), |limit| limit.to_string())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, place, breach } = self;
        match place {
            BreachSite::Record { stream, seq, id } => {
                write!(f, "pool {pool:?}, {stream} record {seq} (id {id}): {breach}")
            }
            BreachSite::Session(session) => write!(f, "pool {pool:?}, session {session}: {breach}"),
            BreachSite::Pool => write!(f, "pool {pool:?}: {breach}"),
        }
    }
}
