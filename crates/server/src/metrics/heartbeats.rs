//! Histogram of the times that clients went on without the server.

use std::time::Duration;

use prometheus_client::registry::Registry;

use super::Timing;

/// Times told with heartbeats that this node renewed.
#[derive(Clone, Debug)]
pub(crate) struct HeartbeatMetrics {
    offline: Timing,
}

impl Default for HeartbeatMetrics {
    fn default() -> Self {
        Self { offline: Timing::of_work() }
    }
}

impl HeartbeatMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "session_offline_seconds",
            "How long clients went on without an answer before a heartbeat was answered",
            self.offline.clone(),
        );
    }

    /// Counts a client that is back after `offline`.
    pub(crate) fn was_offline(&self, offline: Duration) {
        self.offline.observe(offline);
    }
}
