//! The command line, and the measuring effort that it selects. A new role is a variant of `Role`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::effort::{Effort, FULL, QUICK};
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
    /// Added by `cargo bench` behind every other argument
    #[arg(long, hide = true, global = true)]
    bench: bool,
    /// Measure this instead of the embedded server
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// A measurement other than the embedded server's, or the role of a child process that this program starts.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Role {
    /// A node over Redis and PostgreSQL
    Nodes,
    /// Three nodes with many live sessions, and the time until they serve again
    Many {
        /// Number of live sessions
        #[arg(long, default_value_t = 1_000_000)]
        sessions: u32,
    },
    /// A home region beside a server without regions, and a region that forwards
    Regions,
    /// Instructions of a request to the embedded server, counted by Callgrind
    Instructions,
    /// Latency of well-behaved clients beside hostile clients
    Hostile,
    /// This build of the server beside another
    Versus {
        /// The other build's `seatkeeper`
        other: PathBuf,
        /// The `seatkeeper` to compare with it, instead of this build's
        #[arg(long)]
        program: Option<PathBuf>,
        /// Only over Redis and PostgreSQL
        #[arg(long)]
        nodes: bool,
    },
    /// Hostile clients
    #[command(hide = true)]
    Attack {
        /// Kind of attack
        attack: Attack,
        /// Address of the server
        address: String,
        /// Token of every client
        token: String,
    },
    /// A server that only parses and answers JSON
    #[command(hide = true)]
    Bare,
    /// A server with one lean script per request
    #[command(hide = true)]
    Thin {
        /// URL of the Redis
        redis: String,
    },
    /// A server with one commit per request
    #[command(hide = true)]
    Naive {
        /// SQLite database file
        database: PathBuf,
    },
    /// A server with one PostgreSQL transaction per request
    #[command(hide = true)]
    NaivePostgres {
        /// URL of the database
        url: String,
        /// Size of the connection pool
        connections: u32,
    },
    /// A registry full of sessions
    #[command(hide = true)]
    Memory {
        /// Distribution of the sessions over pools
        shape: Shape,
        /// Number of sessions
        sessions: u32,
    },
}

impl Args {
    pub(crate) fn effort(&self) -> Effort {
        if self.quick { QUICK } else { FULL }
    }
}
