//! The backend under test, and its visible behaviour.

use std::collections::HashMap;
use std::sync::Arc;

use seatkeeper_core::{Actor, Event, Origin, PoolId, RegistryTime, RequestId, Span, rule};

use super::compare::Checked;
use super::shadow::Shadow;
use crate::conformance::books::{Account, waiting};
use crate::conformance::harness::Harness;
use crate::{Receipt, Registry};

/// The events of each pool, with the receipt of the last.
type Drained = HashMap<PoolId, (Vec<Event>, Option<Receipt>)>;

/// A backend under test.
pub(super) struct Backend<'h, H> {
    h: &'h H,
    pub(super) registry: Arc<dyn Registry>,
    origin: Origin,
    requests: u64,
}

/// The visible result of a step.
pub(super) struct Observed {
    before: RegistryTime,
    after: RegistryTime,
    pub(super) events: Vec<Event>,
    /// The receipt of the last event.
    end: Option<Receipt>,
}

impl Observed {
    /// Returns the time of the step: from its answer, or its events, or otherwise the time before the step.
    pub(super) fn at(&self, told: Option<RegistryTime>) -> RegistryTime {
        told.or(self.events.first().map(|event| event.at)).unwrap_or(self.before)
    }

    pub(super) fn slack(&self) -> Span {
        self.after.since(self.before)
    }

    /// Checks that the receipt of the answer covers every event of the step.
    pub(super) fn covered_by(&self, receipt: Receipt) -> Checked {
        let covered = self.end.is_none_or(|end| {
            end.bucket == receipt.bucket && (end.epoch, end.position) <= (receipt.epoch, receipt.position)
        });
        if covered { Ok(()) } else { Err(format!("{receipt:?} does not cover {:?}", self.end)) }
    }
}

impl<'h, H: Harness> Backend<'h, H> {
    pub(super) fn new(h: &'h H) -> Self {
        let origin = Origin { actor: Actor::User("olga".into()), request: None };
        Self { h, registry: h.registry(), origin, requests: 0 }
    }

    pub(super) async fn now(&self) -> RegistryTime {
        self.registry.now().await.expect("a registry knows the time")
    }

    pub(super) async fn let_pass(&self, span: Span) -> Checked {
        self.h.let_pass(span).await;
        Ok(())
    }

    /// Opens every pool, every second pool with a session known to the ledger.
    pub(super) async fn open_all(&mut self, shadows: &mut [Shadow]) -> Checked {
        for (n, shadow) in (0_u64..).zip(shadows) {
            let now = self.now().await;
            let live = match n % 2 {
                0 => Vec::new(),
                _ => vec![shadow.known_to_the_ledger("device 0-net 0", now, 2 * n)],
            };
            shadow.account = Account::carried_forward(n, live.iter().map(|it| it.id));
            let opened = self.registry.open(&shadow.id, n, shadow.pool.terms(), live.clone()).await;
            opened.map_err(|error| error.to_string())?;
            let restored = self.registry.view(&shadow.id, 1).await.map_err(|error| error.to_string())?;
            let at = restored.sessions.first().map_or(now, |first| first.session.last_heartbeat);
            for session in live {
                shadow.remember(session.id);
                rule::restore(&mut shadow.pool, shadow.id.kind, session, at);
            }
        }
        Ok(())
    }

    /// Opens a pool again that the registry closed: allowed for an empty pool with all events on record.
    pub(super) async fn reopen(&mut self, shadow: &mut Shadow) -> Checked {
        let counting = shadow.denials.as_ref().is_some_and(|fold| fold.due().is_some());
        if !shadow.pool.is_empty() || counting {
            return Err(format!("{:?} is closed with {} in it", shadow.id, shadow.pool.live()));
        }
        shadow.denials = None;
        let seq = shadow.account.seq();
        let opened = self.registry.open(&shadow.id, seq, shadow.pool.terms(), Vec::new()).await;
        opened.map_err(|error| error.to_string())
    }

    /// Returns the result of a step on a pool. Fails if the step changed another pool.
    pub(super) async fn seen_since(
        &mut self,
        before: RegistryTime,
        shadow: &mut Shadow,
    ) -> Result<Observed, String> {
        let after = self.now().await;
        let mut drained = self.drain().await;
        let (events, end) = drained.remove(&shadow.id).unwrap_or_default();
        nothing_else(&drained)?;
        enter(shadow, &events)?;
        Ok(Observed { before, after, events, end })
    }

    /// Reads the journal to its end and acknowledges every event.
    pub(super) async fn drain(&self) -> Drained {
        let mut drained = Drained::new();
        for entry in waiting(&*self.registry).await {
            self.registry.journal_acknowledge(entry.receipt).await.expect("events can be acknowledged");
            let (events, end) = drained.entry(entry.event.pool.clone()).or_default();
            events.push(entry.event);
            *end = Some(entry.receipt);
        }
        drained
    }

    pub(super) fn next_request(&mut self) -> Origin {
        self.requests += 1;
        Origin { request: Some(RequestId::new(self.requests.to_string())), ..self.origin.clone() }
    }
}

pub(super) fn enter(shadow: &mut Shadow, events: &[Event]) -> Checked {
    events.iter().try_for_each(|event| shadow.account.enter(event))
}

pub(super) fn nothing_else(drained: &Drained) -> Checked {
    if drained.is_empty() { Ok(()) } else { Err(format!("events of other pools: {drained:?}")) }
}
