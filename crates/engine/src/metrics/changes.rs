//! Counts changes in the ledger. Only the node with the commit counts a change, so each change counts once.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::{Change, EndReason, Event, PoolKind};

use super::{OfKind, Timing};

/// Changes committed to the ledger by this node.
#[derive(Clone, Debug)]
pub struct ChangeMetrics {
    created: Family<OfKind, Counter>,
    upgraded: Counter,
    ended: Family<Ended, Counter>,
    cleanup: Timing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    reason: &'static str,
}

impl Default for ChangeMetrics {
    fn default() -> Self {
        let (created, ended) = (Family::<OfKind, Counter>::default(), Family::<Ended, Counter>::default());
        for kind in PoolKind::ALL {
            drop(created.get_or_create(&OfKind::from(kind)));
        }
        for reason in EndReason::ALL {
            drop(ended.get_or_create(&Ended { reason: reason.as_str() }));
        }
        Self { created, upgraded: Counter::default(), ended, cleanup: Timing::of_work() }
    }
}

impl ChangeMetrics {
    /// Registers these metrics with a metrics page.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("sessions_created", "Sessions that began", self.created.clone());
        registry.register(
            "sessions_upgraded",
            "Sessions that gave way to one of a higher tier",
            self.upgraded.clone(),
        );
        registry.register(
            "license_sessions_expired",
            "Sessions of licenses that ended, by the reason: `expired` are those of silent holders and licenses past their date",
            self.ended.clone(),
        );
        registry.register(
            "cleanup_latency_seconds",
            "How long after a session was over that was noticed",
            self.cleanup.clone(),
        );
    }

    /// Counts the new events of a commit. `are_new` is `false` for an event that the ledger had already.
    pub(crate) fn recorded(&self, events: &[Event], are_new: &[bool]) {
        let new = events.iter().zip(are_new).filter(|(_, is_new)| **is_new);
        new.for_each(|(event, _)| self.count(event));
    }

    fn count(&self, event: &Event) {
        match &event.change {
            Change::Admitted { .. } => {
                self.created.get_or_create(&OfKind::from(event.pool.kind)).inc();
            }
            Change::Ended { reason, expires, .. } => {
                if event.pool.kind == PoolKind::License {
                    self.ended.get_or_create(&Ended { reason: reason.as_str() }).inc();
                }
                if *reason == EndReason::Upgraded {
                    self.upgraded.inc();
                }
                if reason.is_by_time() {
                    self.cleanup.observe(Duration::from_millis(event.at.since(*expires).as_millis()));
                }
            }
            Change::Denied(_) => {}
        }
    }
}
