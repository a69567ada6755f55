//! The engine: decides who has a seat, and puts the decision on record before the answer.
//!
//! [`RunningEngine::start`] joins a registry, which decides, with a ledger, which remembers, and starts the workers that
//! keep the two in step. [`Engine`] is the interface for claims, heartbeats and ends. The engine knows no HTTP, no tokens and
//! no settings files: the program supplies plain [`Settings`], a [`TermsSource`] and [`Metrics`](metrics::Metrics).

mod backend;
mod commits;
mod durability;
mod endings;
mod engine;
mod error;
mod failover;
pub mod metrics;
mod registries;
mod running;
mod settings;
mod terms;
pub mod wall_clock;
mod worker;
mod workers;

pub use backend::Backend;
pub use commits::{Commits, Overtaken};
pub use durability::Durability;
pub use endings::{Endings, Listener};
pub use engine::{EndedSession, Engine, HeartbeatOutcome};
pub use error::{Error, Unready, with_causes};
pub use registries::Registries;
pub use running::{Inputs, RunningEngine, StartError};
pub use settings::{RedisSettings, Settings, SharedSettings, SharedStore, Topology};
pub use terms::TermsSource;
pub use worker::{Progress, Worker, WorkerSet};
pub use workers::{OnRecorded, sweep_due};
