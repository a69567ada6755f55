//! Broken promises of the server, as data and as text. A new check gets a variant of [`What`].

use std::fmt;
use std::sync::Arc;

use crate::{Denial, Moment};

/// The number of violations kept in full; further violations are only counted.
const VIOLATIONS_KEPT_MAX: usize = 100;

/// A broken promise of the server.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The pool, by the name given to its checker.
    pub pool: Arc<str>,
    /// The moment of the discovery.
    pub at: Moment,
    /// The broken promise.
    pub what: What,
}

/// The kinds of broken promises.
#[derive(Clone, Debug)]
pub enum What {
    /// More sessions were surely held at an instant than the license has seats.
    AboveLimit {
        /// The number of surely held sessions.
        held: usize,
        /// The limit in the answer.
        seats_total: u32,
    },
    /// The counts of a grant do not add up, or exceed the limit.
    CountsWrong {
        /// `seats_used`.
        used: u32,
        /// `seats_remaining`, if the answer has it.
        remaining: Option<u32>,
        /// `seats_total`.
        total: u32,
    },
    /// More sessions were evicted than necessary.
    EvictedTooMany {
        /// The number of evictions.
        evicted: usize,
        /// The number of live sessions afterwards.
        used: u32,
        /// The limit.
        total: u32,
    },
    /// The evicted session was not the stalest, and the claim had not named it.
    FresherEvicted {
        /// The evicted session.
        victim: Arc<str>,
        /// A session that stayed.
        survivor: Arc<str>,
    },
    /// A session was answered as live after its known end.
    Revived {
        /// The revived session.
        session: Arc<str>,
    },
    /// A machine that surely held a session was given a second session.
    SecondSeat {
        /// The machine.
        machine: Arc<str>,
        /// The two sessions.
        sessions: [Arc<str>; 2],
    },
    /// A machine that surely held a seat was denied because the license is full.
    HolderDenied {
        /// The machine.
        machine: Arc<str>,
    },
    /// A machine was denied because the license is full, while a seat was free during the whole request.
    FalseDenial {
        /// The most sessions that may have been live during the request.
        held_max: usize,
        /// The limit in the answer.
        seats_total: u32,
    },
    /// Seats stayed taken after every TTL was over.
    SeatsLost {
        /// The number of seats that could be taken again.
        taken: usize,
        /// The license's seats.
        seats_total: u32,
    },
    /// A session renewed in time was answered as over.
    FalseEnd {
        /// The ended session.
        session: Arc<str>,
    },
    /// A denial lacks a required field, or contradicts itself.
    RefusalImproper {
        /// The denial.
        denial: Denial,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s, pool {}: {}", self.at.into_run().as_secs_f64(), self.pool, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AboveLimit { held, seats_total } => {
                write!(f, "{held} sessions were held at once, the limit is {seats_total}")
            }
            Self::CountsWrong { used, remaining, total } => {
                let remaining = remaining.map(|remaining| format!(" and {remaining} remaining"));
                write!(f, "a grant says {used} used{} of {total}", remaining.unwrap_or_default())
            }
            Self::EvictedTooMany { evicted, used, total } => {
                write!(f, "{evicted} sessions were evicted, which left {used} of {total} seats in use")
            }
            Self::FresherEvicted { victim, survivor } => {
                write!(f, "session {victim} was evicted, though {survivor} was heard of less lately")
            }
            Self::Revived { session } => {
                write!(f, "session {session} was answered as live after it had ended")
            }
            Self::SecondSeat { machine, sessions: [first, second] } => {
                write!(f, "machine {machine} was given {second} while it held {first}")
            }
            Self::HolderDenied { machine } => write!(f, "machine {machine} was denied while it held a seat"),
            Self::FalseDenial { held_max, seats_total } => {
                write!(f, "denied while at most {held_max} of {seats_total} seats can have been taken")
            }
            Self::SeatsLost { taken, seats_total } => {
                write!(f, "only {taken} of {seats_total} seats could be taken after every TTL was over")
            }
            Self::FalseEnd { session } => write!(f, "session {session} was ended although renewed in time"),
            Self::RefusalImproper { denial } => write!(f, "a denial does not say so properly: {denial:?}"),
        }
    }
}

/// Every violation: the count, and the first in full.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    count: u64,
    first: Vec<Violation>,
}

impl Violations {
    /// Returns the number of violations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first violations.
    pub fn first(&self) -> &[Violation] {
        &self.first
    }

    /// Counts a violation, and keeps the first `VIOLATIONS_KEPT_MAX` in full.
    pub fn push(&mut self, violation: Violation) {
        self.count += 1;
        if self.first.len() < VIOLATIONS_KEPT_MAX {
            self.first.push(violation);
        }
    }

    /// Adds the violations of another license.
    pub fn extend(&mut self, others: &Self) {
        let counted_only = others.count - others.first.len() as u64;
        others.first.iter().cloned().for_each(|violation| self.push(violation));
        self.count += counted_only;
    }
}
