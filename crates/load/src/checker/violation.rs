//! Promises that were seen broken.

use std::fmt;
use std::sync::Arc;

use crate::{Denial, Moment};

/// How many violations are kept in full; the rest are counted.
const VIOLATIONS_KEPT_MAX: usize = 100;

/// A promise of the server's that was seen broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The pool, by the name that its checker was given.
    pub pool: Arc<str>,
    /// When it was seen.
    pub at: Moment,
    /// What was seen.
    pub what: What,
}

/// What was seen.
#[derive(Clone, Debug)]
pub enum What {
    /// More sessions were surely held at one instant than the license has seats.
    AboveLimit {
        /// Sessions that were surely held.
        held: usize,
        /// Seats, as answered.
        seats_total: u32,
    },
    /// The seats of a grant do not add up, or are more than there are.
    CountsWrong {
        /// `seats_used`.
        used: u32,
        /// `seats_remaining`, where that is told.
        remaining: Option<u32>,
        /// `seats_total`.
        total: u32,
    },
    /// More sessions were evicted than it took to make room.
    EvictedTooMany {
        /// How many.
        evicted: usize,
        /// Live sessions afterwards.
        used: u32,
        /// The limit.
        total: u32,
    },
    /// A session was evicted that was not the stalest, and nobody had asked for that.
    FresherEvicted {
        /// The session.
        victim: Arc<str>,
        /// One that stayed.
        survivor: Arc<str>,
    },
    /// A session was answered as live after it was known to have ended.
    Revived {
        /// The session.
        session: Arc<str>,
    },
    /// A machine that surely held a session was given another one beside it.
    SecondSeat {
        /// The machine.
        machine: Arc<str>,
        /// Its sessions.
        sessions: [Arc<str>; 2],
    },
    /// A machine that surely held a seat was told that the license is full.
    HolderDenied {
        /// The machine.
        machine: Arc<str>,
    },
    /// A machine was told that the license is full while a seat was free for as long as it waited.
    FalseDenial {
        /// Sessions that may have been live meanwhile, at most.
        held_max: usize,
        /// Seats, as answered.
        seats_total: u32,
    },
    /// Seats stayed taken after every TTL was over.
    SeatsLost {
        /// Seats that could be taken again.
        taken: usize,
        /// The license's seats.
        seats_total: u32,
    },
    /// A session that was renewed in time was said to be over.
    FalseEnd {
        /// The session.
        session: Arc<str>,
    },
    /// A denial lacks what it has to say, or contradicts itself.
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

/// All that were seen; the first of them in full.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    count: u64,
    first: Vec<Violation>,
}

impl Violations {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them.
    pub fn first(&self) -> &[Violation] {
        &self.first
    }

    /// Adds one.
    pub fn push(&mut self, violation: Violation) {
        self.count += 1;
        if self.first.len() < VIOLATIONS_KEPT_MAX {
            self.first.push(violation);
        }
    }

    /// Adds those of another license.
    pub fn extend(&mut self, others: &Self) {
        let counted_only = others.count - others.first.len() as u64;
        others.first.iter().cloned().for_each(|violation| self.push(violation));
        self.count += counted_only;
    }
}
