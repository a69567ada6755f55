//! The engine: decides who has a seat, and commits the decision to the ledger before the answer.
//!
//! [`RunningEngine::start`] joins a registry, which decides, with a ledger, which records, and starts the
//! workers that keep the two in step. [`Engine`] is the interface for claims, heartbeats and ends. The engine
//! knows no HTTP, no tokens and no settings files: the program supplies plain [`Settings`], a [`TermsSource`]
//! and [`Metrics`](metrics::Metrics).
//!
//! # Seats without a server
//!
//! A program that opens an embedded engine, takes the only seat of a pool, is denied a second one, and
//! releases the seat:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use seatkeeper_core::{
//!     Authority, Claim, EndReason, Holder, Origin, Particulars, Policy, PoolId, PoolKind, Reach, RegistryTime, Seats, Span,
//!     Standing, TenantId, Terms, Tier, UserId, WhenFull, WhenHeld, WhenNamed,
//! };
//! use seatkeeper_engine::{Durability, Engine, Inputs, RunningEngine, Settings, TermsSource};
//! use seatkeeper_ledger::{Ledger, Location};
//! use seatkeeper_registry::{Answer, Request};
//!
//! const TERMS: Terms =
//!     Terms { version: 1, limit: Seats(1), ttl: Span::from_secs(60), ends_at: None, standing: Standing::Open };
//!
//! /// Every pool has the same terms.
//! struct OneSeat;
//!
//! #[async_trait]
//! impl TermsSource for OneSeat {
//!     async fn terms(&self, _: &PoolId, _: RegistryTime) -> Result<Option<Terms>, seatkeeper_ledger::Error> {
//!         Ok(Some(TERMS))
//!     }
//! }
//!
//! /// Claims a seat of `pool` for a machine of `user`. Returns once the ledger has the admission.
//! async fn claim(engine: &Engine, pool: &PoolId, machine: &str, user: &UserId) -> Result<Answer, seatkeeper_engine::Error> {
//!     let claim = Claim {
//!         holder: Holder::new(machine),
//!         user: user.clone(),
//!         tier: Tier::default(),
//!         session: None,
//!         replace: None,
//!     };
//!     let policy = Policy {
//!         terms: Some(TERMS),
//!         ttl_default: TERMS.ttl,
//!         when_named: WhenNamed::SameHolder,
//!         when_full: WhenFull::Deny,
//!         when_held: WhenHeld::Resume,
//!     };
//!     let (origin, particulars) = (Origin::SYSTEM, Particulars::default());
//!     let request =
//!         Request { pool, claim: &claim, policy: &policy, origin: &origin, particulars: &particulars };
//!     Ok(engine.claim(request, Durability::Ledger).await?.answer)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().to_owned();
//! let ledger = Ledger::open(seatkeeper_ledger::Settings::new(Location::Directory(directory))).await?;
//! let inputs = Inputs {
//!     terms: Arc::new(OneSeat),
//!     metrics: Default::default(),
//!     on_recorded: None,
//!     on_left: None,
//!     stopping: Default::default(),
//! };
//! let running = RunningEngine::start(ledger, &Settings::default(), inputs).await?;
//! let engine = running.engine();
//!
//! let (tenant, ada) = (TenantId::new("acme"), UserId::new("ada"));
//! let pool = PoolId::new(PoolKind::License, tenant.clone(), "cad");
//! let Answer::Granted { session, .. } = claim(engine, &pool, "workstation", &ada).await? else {
//!     panic!("the first claim takes the seat");
//! };
//! let second = claim(engine, &pool, "laptop", &ada).await?;
//! assert!(matches!(second, Answer::Denied(_)), "the pool is full");
//!
//! let own = Authority::new(tenant, Reach::Own(ada.clone()));
//! let was_live =
//!     engine.end(session.session.id, &own, EndReason::Released, &Origin::SYSTEM, Durability::Ledger).await?;
//! assert!(was_live);
//! let third = claim(engine, &pool, "laptop", &ada).await?;
//! assert!(matches!(third, Answer::Granted { .. }), "the seat is free again");
//! running.stop().await;
//! # Ok(())
//! # }
//! ```

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
pub use engine::{ChargedSearch, EndedSession, Engine, HeartbeatOutcome, OnLeft, SearchQuota};
pub use error::{Error, Unready, with_causes};
pub use registries::Registries;
pub use running::{Inputs, RunningEngine, StartError};
pub use settings::{RedisSettings, Settings, SharedSettings, SharedStore, Topology};
pub use terms::TermsSource;
pub use worker::{Progress, Worker, WorkerSet};
pub use workers::{OnRecorded, sweep_due};
