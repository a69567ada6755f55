//! What breaks the log, and where.

use std::fmt;

use seatkeeper_core::{Holder, PoolId, SessionId};

use crate::audit::Stream;

/// The first thing that a replay found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The pool it was found in.
    pub pool: PoolId,
    /// Where in the pool.
    pub place: Place,
    /// What is wrong there.
    pub breach: Breach,
}

/// Where in a pool something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a record.
    Record {
        /// Its stream.
        stream: Stream,
        /// Its number in the stream.
        seq: u64,
        /// Its place in the whole log.
        id: u64,
    },
    /// At a row of the table of sessions.
    Session(SessionId),
    /// In the pool as a whole.
    Pool,
}

/// What may be wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// A record is missing, or there twice.
    #[error("the next record should be number {expected}")]
    Gap {
        /// The number that should come.
        expected: u64,
    },
    /// A record is older than the one before it.
    #[error("it is older than the record before it")]
    TimeRanBack,
    /// The record lacks what one of its action has, or its stream has no such action.
    #[error("it is not a whole record of its action and stream")]
    Malformed,
    /// An entitlement's version is not its number in the stream.
    #[error("it tells version {version}")]
    VersionIsNotItsNumber {
        /// The version it tells.
        version: u64,
    },
    /// A plan's or subscription's version is not newer than the one before it.
    #[error("it tells version {version} after version {newest}")]
    VersionRanBack {
        /// The version it tells.
        version: u64,
        /// The newest before it.
        newest: u64,
    },
    /// An admission was decided by what a subscription grants at another time than the admission's.
    #[error("version {version} of its terms was not in force then")]
    NotInForce {
        /// The version it names.
        version: u64,
    },
    /// An admission left more sessions live than its limit.
    #[error("the admission left {live} live, and the limit was {limit}")]
    AboveLimit {
        /// Sessions live after it.
        live: u64,
        /// The limit.
        limit: u32,
    },
    /// The limit of an admission, or of a change, is not what the entitlement granted.
    #[error("its limit is {limit}, and version {version} of the entitlement granted {}", granted_text(*.granted))]
    LimitNotGranted {
        /// The limit it tells.
        limit: u32,
        /// The version it names.
        version: u64,
        /// What that version granted, if it is on record.
        granted: Option<u32>,
    },
    /// An admission was decided by older terms than one before it.
    #[error("it was decided by version {version} after version {newest} had been")]
    OlderTerms {
        /// The version it names.
        version: u64,
        /// The newest that an admission before it named.
        newest: u64,
    },
    /// A record's number of live sessions is not what its predecessors leave.
    #[error("it tells {told} live sessions, and the records before it leave {counted}")]
    LiveMiscounted {
        /// What the record tells.
        told: u32,
        /// What folding gives.
        counted: u64,
    },
    /// A session began a second time.
    #[error("session {session} began before")]
    BeganAgain {
        /// The session.
        session: SessionId,
    },
    /// A holder was admitted while it was in.
    #[error("{holder:?} holds session {session} already")]
    HolderIsIn {
        /// The holder.
        holder: Holder,
        /// The session it holds.
        session: SessionId,
    },
    /// A session ended that had never begun, or by another holder.
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
    /// A session ended as expired before its time.
    #[error("session {session} expired before its time was over")]
    ExpiredEarly {
        /// The session.
        session: SessionId,
    },
    /// A claim was denied as "full" while a seat was free.
    #[error("it was denied as full with {live} live, and the limit was {limit}")]
    DeniedWithSeatsFree {
        /// Sessions live.
        live: u64,
        /// The limit.
        limit: u32,
    },
    /// The admissions kept at a cut are not those of the sessions that were live there.
    #[error("{told} sessions were live where history was cut, and the admissions of {kept} are kept")]
    CutMiscounted {
        /// How many were live.
        told: u32,
        /// How many admissions are kept.
        kept: u64,
    },
    /// A stream does not end at its head: records are missing at its end, or were added to it.
    #[error("the {stream} stream ends at record {recorded}, and its head is {head}")]
    HeadDiffers {
        /// The stream.
        stream: Stream,
        /// The number of its last record; 0: it has none.
        recorded: u64,
        /// The number of the last record that was appended; 0: none is known.
        head: u64,
    },
    /// A row of the table of sessions has no record.
    #[error("no record tells of this session")]
    NotOnRecord,
    /// A row of the table of sessions differs from what the log gives.
    #[error("the log tells otherwise of this session")]
    Differs,
    /// Sessions that the log tells of are not in the table.
    #[error("{missing} sessions on record are not in the table of sessions")]
    SessionsMissing {
        /// How many.
        missing: u64,
    },
    /// As many sessions as stand among the live ones are not live.
    #[error("{standing} sessions stand among the live ones, and by the log {live} are live")]
    LiveMisplaced {
        /// How many stand there.
        standing: u64,
        /// How many are live.
        live: u64,
    },
}

fn granted_text(granted: Option<u32>) -> String {
    granted.map_or("nothing that is on record".to_owned(), |limit| limit.to_string())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, place, breach } = self;
        match place {
            Place::Record { stream, seq, id } => {
                write!(f, "pool {pool:?}, {stream} record {seq} (id {id}): {breach}")
            }
            Place::Session(session) => write!(f, "pool {pool:?}, session {session}: {breach}"),
            Place::Pool => write!(f, "pool {pool:?}: {breach}"),
        }
    }
}
