//! Each operation on the backend and on the rule, with the comparison.

use std::collections::BTreeSet;

use seatkeeper_core::rule::Renewal;
use seatkeeper_core::{
    Authority, Bucket, Change, Claim, EndReason, Event, Origin, Particulars, Policy, Region, RegistryTime,
    SessionId, Terms,
};

use super::backend::{Backend, Observed, enter, nothing_else};
use super::compare::{Checked, same, same_denial, same_record};
use super::shadow::{Entry, Shadow, entries};
use crate::conformance::books::sweep_out;
use crate::conformance::harness::Harness;
use crate::{Answer, Claimed, Ended, EndedAll, Error, Granted, Heartbeat, Live, Liveness, PoolView, Request};

/// Few pools per sweep, so that sweeps take several calls.
const SWEPT_POOLS_MAX: usize = 2;

impl<H: Harness> Backend<'_, H> {
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
            Heartbeat::Renewed(liveness) => Some(liveness.expires - liveness.expires_in),
            Heartbeat::Over { .. } | Heartbeat::Missing | Heartbeat::NeverWas => None,
        });
        let mut expected = shadow.expire_early(&seen.events, Some(id), at);
        let found = if shadow.covers(who, id) { shadow.renew(id, at) } else { Renewal::Missing };
        match (found, heard) {
            (Renewal::Renewed, Heartbeat::Renewed(liveness)) => {
                same("renewed", &Some(liveness), &shadow.live(id, at).map(Liveness::from))?;
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
        let left = shadow.leaves(who, id, reason, at);
        let ends = shadow.covers(who, id) && !left;
        let own = if ends { shadow.end(id, reason, &origin, at) } else { Vec::new() };
        same("left", &(ended == Ended::Left), &left)?;
        let told = match ended {
            Ended::Now { reason, receipt } => {
                seen.covered_by(receipt)?;
                Some(reason)
            }
            Ended::Left | Ended::Missing => None,
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
        let at = seen.at(live.as_ref().map(time_of));
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
        let at = seen.at(view.sessions.first().map(time_of));
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
        let ended = sweep_out(&*self.registry, bucket, SWEPT_POOLS_MAX).await;
        let mut drained = self.drain().await;
        let mut on_record = 0;
        for shadow in shadows.iter_mut().filter(|shadow| shadow.id.bucket() == bucket) {
            let events = drained.remove(&shadow.id).unwrap_or_default().0;
            enter(shadow, &events)?;
            on_record += events.iter().filter(|event| matches!(event.change, Change::Ended { .. })).count();
            same_record(&events, swept(shadow, before, &events))?;
        }
        nothing_else(&drained)?;
        same("sessions that a sweep ended", &ended, &on_record)
    }

    /// Compares the whole state.
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
}

/// Returns the rule's records for a sweep at the times of `events`, or at `before` if there are no events. A
/// pool may be swept twice while another pool of its bucket still waits, at a later time of a real clock.
fn swept(shadow: &mut Shadow, before: RegistryTime, events: &[Event]) -> Vec<Entry> {
    let mut times: BTreeSet<_> = events.iter().map(|event| event.at).collect();
    if times.is_empty() {
        times.insert(before);
    }
    times.into_iter().flat_map(|at| shadow.sweep(at)).collect()
}

/// Returns the time at which an answer saw the session.
fn time_of(live: &Live) -> RegistryTime {
    live.expires - live.expires_in
}

fn compare_claim(
    shadow: &mut Shadow,
    claim: &Claim,
    policy: &Policy,
    origin: &Origin,
    claimed: &Claimed,
    seen: &Observed,
) -> Checked {
    let live = match &claimed.answer {
        Answer::Granted { session, .. } => Some(&**session),
        Answer::Denied(_) => None,
    };
    let at = seen.at(live.map(time_of));
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

/// Checks that admissions and denials carry the terms of their decision.
fn decided_by(shadow: &Shadow, events: &[Event]) -> Checked {
    let terms = (shadow.limit(), shadow.pool.terms().map_or(0, |terms| terms.version));
    for event in events {
        if !matches!(event.change, Change::Ended { .. }) {
            same("limit and version on record", &(event.limit, event.version), &terms)?;
        }
    }
    Ok(())
}

fn compare_end_of_all(ended: EndedAll, seen: &Observed, expected: Vec<Entry>) -> Checked {
    seen.covered_by(ended.receipt)?;
    same("sessions that ended", &ended.count, &expected.len())?;
    same_record(&seen.events, expected)
}

fn reason_of((_, change): &Entry) -> Option<EndReason> {
    match change {
        Change::Ended { reason, .. } => Some(*reason),
        Change::Admitted { .. } | Change::Denied(_) => None,
    }
}
