//! The arguments, and how much effort they ask for.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::hostile::attack::Attack;
use crate::memory::Shape;

/// Measures the speed targets.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Measure shorter and less: for a first impression
    #[arg(long, global = true)]
    quick: bool,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What `cargo bench` adds, behind all else
    #[arg(long, hide = true, global = true)]
    bench: bool,
    /// What to measure instead of the embedded server
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What to measure instead of the embedded server; or what a process is that this program starts of itself.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Role {
    /// A node over Redis and PostgreSQL
    Nodes,
    /// Three nodes with many live sessions, and how soon they serve again
    Many {
        /// How many sessions are live
        #[arg(long, default_value_t = 1_000_000)]
        sessions: u32,
    },
    /// How others fare beside hostile clients
    Hostile,
    /// This build of the server beside another
    Versus {
        /// The other build's `seatkeeper`
        other: PathBuf,
        /// The `seatkeeper` to compare it with, instead of this build's
        #[arg(long)]
        program: Option<PathBuf>,
        /// Only over Redis and PostgreSQL
        #[arg(long)]
        nodes: bool,
    },
    /// Hostile clients
    #[command(hide = true)]
    Attack {
        /// What they do
        attack: Attack,
        /// Where
        address: String,
        /// By which token
        token: String,
    },
    /// A server that only parses and answers JSON
    #[command(hide = true)]
    Bare,
    /// A server with one commit for each request
    #[command(hide = true)]
    Naive {
        /// Its database file
        database: PathBuf,
    },
    /// The same with one transaction in PostgreSQL for each request
    #[command(hide = true)]
    NaivePostgres {
        /// Its database
        url: String,
        /// How many connections it has to it
        connections: u32,
    },
    /// A registry full of sessions
    #[command(hide = true)]
    Memory {
        /// How they are spread
        shape: Shape,
        /// How many there are
        sessions: u32,
    },
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds of each comparison.
    pub(crate) rounds: usize,
    /// How long each side is measured in a round: for devices a burst, which the journal takes up.
    pub(crate) measured: Duration,
    /// How long devices evict one another without a pause.
    pub(crate) sustained: Duration,
    /// Acquires of each side in a round, where acquires are counted.
    pub(crate) acquires: u64,
    /// Seats of the large license.
    pub(crate) seats_many: u32,
    /// Live sessions whose memory is measured.
    pub(crate) sessions: u32,
}

const FULL: Effort = Effort {
    rounds: 11,
    measured: Duration::from_secs(2),
    sustained: Duration::from_secs(30),
    acquires: 4_000,
    seats_many: 100_000,
    sessions: 1_000_000,
};

const QUICK: Effort = Effort {
    rounds: 3,
    measured: Duration::from_secs(1),
    sustained: Duration::from_secs(10),
    acquires: 1_000,
    seats_many: 100_000,
    sessions: 1_000_000,
};

impl Args {
    pub(crate) fn effort(&self) -> Effort {
        if self.quick { QUICK } else { FULL }
    }
}
