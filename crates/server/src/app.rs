//! The state shared by all handlers.

use std::sync::Arc;

use seatkeeper_ledger::Ledger;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Verifier;
use crate::entitlements::Entitlements;
use crate::flood::Flood;
use crate::holders::Holders;
use crate::jobs::Roster;
use crate::limits::Limits;
use crate::metrics::{Looks, Metrics, MetricsAccess, MetricsPage};
use crate::regions::Regions;
use crate::release_codes::ReleaseCodes;
use crate::relocation::Mover;
use crate::settings::Settings;
use seatkeeper_engine::Engine;

/// The server's parts, shared by all requests.
#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) verifier: Verifier,
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Ledger,
    pub(crate) entitlements: Arc<Entitlements>,
    pub(crate) jobs: Roster,
    pub(crate) limits: Limits,
    pub(crate) holders: Holders,
    pub(crate) release_codes: Arc<ReleaseCodes>,
    /// `None` for a deployment without regions.
    pub(crate) regions: Option<Arc<Regions>>,
    /// Moves homes. `None` for a deployment without regions.
    pub(crate) mover: Option<Arc<Mover>>,
    pub(crate) metrics: Metrics,
    pub(crate) metrics_page: MetricsPage,
    pub(crate) metrics_access: MetricsAccess,
    pub(crate) looks: Arc<Looks>,
    /// Limits the lines about reads of the ledger that failed, while their requests are answered.
    pub(crate) failed_reads: Flood,
    /// Permits a single reconciliation of usage, which may take seconds of a CPU.
    pub(crate) reconciliation: Semaphore,
    /// Cancelled at the start of a shutdown, so that endless answers, such as event streams, end.
    pub(crate) stopping: CancellationToken,
    /// Writes that outlive a cut-off request. A shutdown waits for them.
    pub(crate) writes: TaskTracker,
}

impl App {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
