//! The backend's side of a step, and the comparison with the rule's.

use std::collections::HashMap;
use std::sync::Arc;

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{
    Actor, Authority, Bucket, Change, Claim, EndReason, Event, Origin, Particulars, Policy, Region,
    RegistryTime, RequestId, SessionId, Span, Terms,
};

use super::compare::{same, same_denial, same_record};
use super::shadow::{Entry, Shadow, entries};
use crate::conformance::books::waiting;
use crate::conformance::harness::Harness;
use crate::{
    Answer, Claimed, Ended, EndedAll, Error, Granted, Heartbeat, Live, PoolView, Receipt, Registry, Request,
};

const SWEPT_POOLS_MAX: usize = 2;

type Checked = Result<(), String>;

/// A backend under test.
pub(super) struct Backend<'h, H> {
    h: &'h H,
    registry: Arc<dyn Registry>,
    origin: Origin,
    requests: u64,
}

/// What can be seen of a step from outside.
struct Seen {
    before: RegistryTime,
    after: RegistryTime,
    events: Vec<Event>,
    /// Where the last of them stands.
    end: Option<Receipt>,
}

impl Seen {
    /// When the step was made: as its answer or its events tell, or else when it began.
    fn at(&self, live: Option<&Live>) -> RegistryTime {
        let told = live.map(|live| live.expires - live.expires_in);
        told.or(self.events.first().map(|event| event.at)).unwrap_or(self.before)
    }

    fn slack(&self) -> Span {
        self.after.since(self.before)
    }

    /// The receipt of the answer covers every event of the step.
    fn covered_by(&self, receipt: Receipt) -> Checked {
        let covered =
            self.end.is_none_or(|end| end.bucket == receipt.bucket && end.position <= receipt.position);
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

    /// Opens every pool; each second one with sessions that the ledger knows.
    pub(super) async fn open_all(&mut self, shadows: &mut [Shadow]) -> Checked {
        for (n, shadow) in (0_u64..).zip(shadows) {
            let now = self.now().await;
            let live = match n % 2 {
                0 => Vec::new(),
                _ => vec![shadow.known_to_the_ledger("ann", now, 2 * n)],
            };
            shadow.account = super::super::books::Account::carried_forward(n, live.iter().map(|it| it.id));
            let opened = self.registry.open(&shadow.id, n, shadow.pool.terms(), live.clone()).await;
            opened.map_err(|error| error.to_string())?;
            let restored = self.registry.view(&shadow.id, 1).await.map_err(|error| error.to_string())?;
            let at = restored.sessions.first().map_or(now, |first| first.session.last_heartbeat);
            for session in live {
                shadow.remember(session.id);
                rule::restore(&mut shadow.pool, session, at);
            }
        }
        Ok(())
    }

    pub(super) async fn claim(&mut self, shadow: &mut Shadow, claim: &Claim, policy: &Policy) -> Checked {
        let origin = self.next_request();
        let before = self.now().await;
        let claimed = match self.try_claim(shadow, claim, policy, &origin).await {
            Err(Error::PoolNotOpen) => {
                self.reopen(shadow).await?;
                self.try_claim(shadow, claim, policy, &origin).await
            }
            other => other,
        };
        let claimed = claimed.map_err(|error| error.to_string())?;
        let seen = self.seen_since(before, shadow).await?;
        seen.covered_by(claimed.receipt)?;
        compare_claim(shadow, claim, policy, &origin, &claimed, &seen)
    }

    async fn try_claim(
        &self,
        shadow: &Shadow,
        claim: &Claim,
        policy: &Policy,
        origin: &Origin,
    ) -> Result<Claimed, Error> {
        let particulars = Particulars::default();
        self.registry
            .claim(Request { pool: &shadow.id, claim, policy, origin, particulars: &particulars })
            .await
    }

    pub(super) async fn heartbeat(&mut self, shadow: &mut Shadow, id: SessionId, who: &Authority) -> Checked {
        let origin = self.next_request();
        let before = self.now().await;
        let heard = self.registry.heartbeat(id, who, &origin).await.map_err(|error| error.to_string())?;
        let seen = self.seen_since(before, shadow).await?;
        let at = seen.at(match &heard {
            Heartbeat::Renewed(live) => Some(live),
            Heartbeat::Over { .. } | Heartbeat::Missing => None,
        });
        let mut expected = shadow.expire_early(&seen.events, Some(id), at);
        let found = if shadow.covers(who, id) { shadow.renew(id, at) } else { Renewal::Missing };
        match (found, heard) {
            (Renewal::Renewed, Heartbeat::Renewed(live)) => {
                same("renewed", &Some(*live), &shadow.live(id, at))?;
            }
            (Renewal::Over(ending), Heartbeat::Over { last_heartbeat, receipt }) => {
                same("last heartbeat", &last_heartbeat, &ending.session.last_heartbeat)?;
                seen.covered_by(receipt)?;
                expected.extend(entries(&[*ending], &origin));
            }
            (Renewal::Missing, Heartbeat::Missing) => {}
            (rule, backend) => return Err(format!("heartbeat\n  backend: {backend:?}\n  rule:    {rule:?}")),
        }
        same_record(&seen.events, expected)
    }

    pub(super) async fn end(
        &mut self,
        shadow: &mut Shadow,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
    ) -> Checked {
        let origin = self.next_request();
        let before = self.now().await;
        let ended = self.registry.end(id, who, reason, &origin).await.map_err(|error| error.to_string())?;
        let seen = self.seen_since(before, shadow).await?;
        let at = seen.at(None);
        let mut expected = shadow.expire_early(&seen.events, Some(id), at);
        let own = if shadow.covers(who, id) { shadow.end(id, reason, &origin, at) } else { Vec::new() };
        let told = match ended {
            Ended::Now { reason, receipt } => {
                seen.covered_by(receipt)?;
                Some(reason)
            }
            Ended::Missing => None,
        };
        same("reason", &told, &own.first().and_then(reason_of))?;
        expected.extend(own);
        same_record(&seen.events, expected)
    }

    pub(super) async fn end_all(&mut self, shadow: &mut Shadow, reason: EndReason) -> Checked {
        let origin = self.next_request();
        let before = self.now().await;
        let ended = match self.registry.end_all(&shadow.id, reason, &origin).await {
            Err(Error::PoolNotOpen) => return self.reopen(shadow).await,
            other => other.map_err(|error| error.to_string())?,
        };
        let seen = self.seen_since(before, shadow).await?;
        let expected = shadow.end_all(reason, &origin, seen.at(None));
        compare_end_of_all(ended, &seen, expected)
    }

    pub(super) async fn revise(&mut self, shadow: &mut Shadow, terms: Terms) -> Checked {
        let origin = self.next_request();
        let before = self.now().await;
        let ended = match self.registry.revise(&shadow.id, terms, &origin).await {
            Err(Error::PoolNotOpen) => return self.reopen(shadow).await,
            other => other.map_err(|error| error.to_string())?,
        };
        let seen = self.seen_since(before, shadow).await?;
        let expected = shadow.revise(terms, &origin, seen.at(None));
        compare_end_of_all(ended, &seen, expected)
    }

    pub(super) async fn session(&mut self, shadow: &mut Shadow, id: SessionId, who: &Authority) -> Checked {
        let before = self.now().await;
        let live = self.registry.session(id, who).await.map_err(|error| error.to_string())?;
        let seen = self.seen_since(before, shadow).await?;
        let at = seen.at(live.as_ref());
        let covered = shadow.covers(who, id);
        let expected = shadow.expire_early(&seen.events, None, at);
        same("session", &live, &shadow.live(id, at).filter(|_| covered))?;
        same_record(&seen.events, expected)
    }

    pub(super) async fn view(&mut self, shadow: &mut Shadow, max: usize) -> Checked {
        let before = self.now().await;
        let view = match self.registry.view(&shadow.id, max).await {
            Err(Error::PoolNotOpen) => return self.reopen(shadow).await,
            other => other.map_err(|error| error.to_string())?,
        };
        let seen = self.seen_since(before, shadow).await?;
        let at = seen.at(view.sessions.first());
        let expected = shadow.forget_over(at);
        let mut sessions: Vec<_> = shadow.pool.iter().collect();
        sessions.sort_by_key(|session| (session.last_heartbeat, session.started, session.id));
        let sessions = sessions.into_iter().take(max).filter_map(|session| shadow.live(session.id, at));
        let sessions = sessions.collect();
        same("view", &view, &PoolView { live: shadow.pool.live(), terms: shadow.pool.terms(), sessions })?;
        same_record(&seen.events, expected)
    }

    pub(super) async fn sweep(&mut self, shadows: &mut [Shadow], bucket: Bucket) -> Checked {
        let before = self.now().await;
        let mut ended = 0;
        loop {
            let swept = self.registry.sweep(bucket, SWEPT_POOLS_MAX).await;
            let swept = swept.map_err(|error| error.to_string())?;
            ended += swept.ended;
            if !swept.more {
                break;
            }
        }
        let mut drained = self.drain().await;
        let mut on_record = 0;
        for shadow in shadows.iter_mut().filter(|shadow| shadow.id.bucket() == bucket) {
            let events = drained.remove(&shadow.id).unwrap_or_default().0;
            let at = events.first().map_or(before, |event| event.at);
            enter(shadow, &events)?;
            on_record += events.iter().filter(|event| matches!(event.change, Change::Ended { .. })).count();
            same_record(&events, shadow.sweep(at))?;
        }
        nothing_else(drained)?;
        same("sessions that a sweep ended", &ended, &on_record)
    }

    /// Compares everything.
    pub(super) async fn inspect(&mut self, shadows: &mut [Shadow]) -> Checked {
        for shadow in &mut *shadows {
            self.view(shadow, usize::MAX).await?;
            let live: Vec<_> = shadow.account.live().collect();
            let mut ids: Vec<_> = shadow.pool.iter().map(|session| session.id).collect();
            ids.sort_unstable();
            same("account of the journal", &live, &ids)?;
        }
        for shadow in &*shadows {
            let due = self.registry.due(shadow.id.bucket()).await.map_err(|error| error.to_string())?;
            if let Some(by) = shadow.due()
                && due.is_none_or(|due| due > by)
            {
                return Err(format!("{:?} is due by {by:?}, its bucket at {due:?}", shadow.id));
            }
        }
        Ok(())
    }

    /// A registry may have closed a pool that nobody is in and of which all is on record.
    async fn reopen(&mut self, shadow: &mut Shadow) -> Checked {
        let counting = shadow.denials.as_ref().is_some_and(|fold| fold.due().is_some());
        if !shadow.pool.is_empty() || counting {
            return Err(format!("{:?} is closed with {} in it", shadow.id, shadow.pool.live()));
        }
        shadow.denials = None;
        let seq = shadow.account.seq();
        let opened = self.registry.open(&shadow.id, seq, shadow.pool.terms(), Vec::new()).await;
        opened.map_err(|error| error.to_string())
    }

    /// What the step on this pool brought onto record; nothing may have happened to another.
    async fn seen_since(&mut self, before: RegistryTime, shadow: &mut Shadow) -> Result<Seen, String> {
        let after = self.now().await;
        let mut drained = self.drain().await;
        let (events, end) = drained.remove(&shadow.id).unwrap_or_default();
        nothing_else(drained)?;
        enter(shadow, &events)?;
        Ok(Seen { before, after, events, end })
    }

    /// Reads the journal to its end and acknowledges it.
    async fn drain(&self) -> HashMap<seatkeeper_core::PoolId, (Vec<Event>, Option<Receipt>)> {
        let mut drained: HashMap<_, (Vec<Event>, Option<Receipt>)> = HashMap::new();
        for entry in waiting(&*self.registry).await {
            self.registry.journal_acknowledge(entry.receipt).await.expect("events can be acknowledged");
            let (events, end) = drained.entry(entry.event.pool.clone()).or_default();
            events.push(entry.event);
            *end = Some(entry.receipt);
        }
        drained
    }

    fn next_request(&mut self) -> Origin {
        self.requests += 1;
        Origin { request: Some(RequestId::new(self.requests.to_string())), ..self.origin.clone() }
    }
}

fn compare_claim(
    shadow: &mut Shadow,
    claim: &Claim,
    policy: &Policy,
    origin: &Origin,
    claimed: &Claimed,
    seen: &Seen,
) -> Checked {
    let live = match &claimed.answer {
        Answer::Granted { session, .. } => Some(&**session),
        Answer::Denied(_) => None,
    };
    let at = seen.at(live);
    let unused = SessionId::mint(at, shadow.id.bucket(), Region::default(), u64::MAX);
    let fresh = match &claimed.answer {
        Answer::Granted { how: Granted::Admitted, session, .. } => session.session.id,
        Answer::Granted { .. } | Answer::Denied(_) => unused,
    };
    let mut expected = shadow.expire_early(&seen.events, None, at);
    let (answer, recorded) = shadow.claim(claim, policy, origin, fresh, at);
    expected.extend(recorded);
    if let (Answer::Denied(backend), Answer::Denied(rule)) = (&claimed.answer, &answer) {
        same_denial(*backend, *rule, seen.slack())?;
        expected.extend(shadow.deny(&claim.holder, *backend, origin, at));
    } else {
        same("answer", &claimed.answer, &answer)?;
    }
    same("live and limit", &(claimed.live, claimed.limit), &(shadow.pool.live(), shadow.limit()))?;
    same_record(&seen.events, expected)?;
    decided_by(shadow, &seen.events)
}

/// Admissions and denials name the terms that they were decided by.
fn decided_by(shadow: &Shadow, events: &[Event]) -> Checked {
    let terms = (shadow.limit(), shadow.pool.terms().map_or(0, |terms| terms.version));
    for event in events {
        if !matches!(event.change, Change::Ended { .. }) {
            same("limit and version on record", &(event.limit, event.version), &terms)?;
        }
    }
    Ok(())
}

fn compare_end_of_all(ended: EndedAll, seen: &Seen, expected: Vec<Entry>) -> Checked {
    seen.covered_by(ended.receipt)?;
    same("sessions that ended", &ended.count, &expected.len())?;
    same_record(&seen.events, expected)
}

fn enter(shadow: &mut Shadow, events: &[Event]) -> Checked {
    events.iter().try_for_each(|event| shadow.account.enter(event))
}

fn nothing_else<K: std::fmt::Debug, V: std::fmt::Debug>(drained: HashMap<K, V>) -> Checked {
    if drained.is_empty() { Ok(()) } else { Err(format!("events of other pools: {drained:?}")) }
}

fn reason_of((_, change): &Entry) -> Option<EndReason> {
    match change {
        Change::Ended { reason, .. } => Some(*reason),
        Change::Admitted { .. } | Change::Denied(_) => None,
    }
}
