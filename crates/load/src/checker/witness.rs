//! Checks a pool's promises from the clients' side, even if a newcomer may evict a holder.
//!
//! A session was surely live from the receipt of its grant until the sending of the latest request that found
//! it live: a heartbeat answered as live, a release that found the session, an admission that evicted it. The
//! verdict is therefore given afterwards, and rests only on the clients' observations. Two sessions with
//! overlapping sure lives were live together. All sessions whose sure lives span a request were live at its
//! decision, whatever limit was in force.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::{ABANDONED_WORK_MAX, CLOCK_GRAIN, RequestSpan, Violation, Violations, What, surely_until};
use crate::{Grant, How, Moment};

/// The observations of a pool's clients. The memory grows with every request, so a witness suits short runs.
#[derive(Clone, Debug)]
pub struct Witness {
    pool: Arc<str>,
    lives: HashMap<Arc<str>, Life>,
    decided: Vec<Decided>,
    /// Abandoned claims of each holder: each may have renewed a session until its `answered`.
    abandoned: HashMap<Arc<str>, Vec<RequestSpan>>,
    violations: Violations,
}

#[derive(Clone, Debug)]
struct Life {
    holder: Arc<str>,
    /// The sure life: the session was live from `since` to `until`.
    since: Moment,
    until: Moment,
    /// The latest possible end.
    over: Option<Moment>,
    /// The session could not expire before this moment.
    told_until: Moment,
    /// The requests that renewed the session, beginning with its admission.
    renewals: Vec<RequestSpan>,
}

/// A session with its id.
type HeldSeat<'a> = (&'a Arc<str>, &'a Life);

/// A decided claim.
#[derive(Clone, Debug)]
struct Decided {
    asked: RequestSpan,
    holder: Arc<str>,
    how: Decision,
}

#[derive(Clone, Debug)]
enum Decision {
    /// A new session was admitted within `limit`. `victims` were evicted without being named by the claim.
    Admitted {
        session: Arc<str>,
        limit: u32,
        victims: Vec<Arc<str>>,
    },
    Denied,
}

impl Life {
    fn spans(&self, asked: RequestSpan) -> bool {
        self.since <= asked.sent && self.until >= asked.answered
    }

    fn is_over_by(&mut self, moment: Moment) {
        self.over = Some(self.over.map_or(moment, |over| over.min(moment)));
    }

    /// Returns the earliest time of the last renewal before the session's end.
    fn renewed_from(&self) -> Moment {
        self.renewals.iter().map(|asked| asked.sent).max().unwrap_or_default()
    }
}

impl Witness {
    /// Returns a witness of a pool without known holders. `pool` names the pool in violations.
    pub fn new(pool: impl Into<Arc<str>>) -> Self {
        Self {
            pool: pool.into(),
            lives: HashMap::new(),
            decided: Vec::new(),
            abandoned: HashMap::new(),
            violations: Violations::default(),
        }
    }

    /// Notes a granted claim by `holder`. `replaced` is the session that the claim wanted to end.
    pub fn granted(
        &mut self,
        holder: &Arc<str>,
        grant: &Grant,
        replaced: Option<&Arc<str>>,
        asked: RequestSpan,
    ) {
        for evicted in &grant.evicted {
            self.ended(evicted, asked);
        }
        self.renewed(holder, &grant.session_id, grant.expires_in_seconds, asked);
        if grant.how == How::Resumed {
            return;
        }
        let (evicted, used, total) = (grant.evicted.len(), grant.seats_used, grant.seats_total);
        if used == 0 || used > total {
            self.broken(asked.answered, What::CountsWrong { used, remaining: grant.seats_remaining, total });
        }
        if evicted > 0 && used < total {
            self.broken(asked.answered, What::EvictedTooMany { evicted, used, total });
        }
        let victims = grant.evicted.iter().filter(|&victim| Some(victim) != replaced);
        let (session, victims) = (grant.session_id.clone(), victims.cloned().collect());
        let how = Decision::Admitted { session, limit: total, victims };
        self.decided.push(Decided { asked, holder: holder.clone(), how });
    }

    /// Notes a claim by `holder` denied because every seat was taken.
    pub fn denied(&mut self, holder: &Arc<str>, asked: RequestSpan) {
        self.decided.push(Decided { asked, holder: holder.clone(), how: Decision::Denied });
    }

    /// Notes that `holder` abandoned a claim after sending it, with an unknown outcome.
    pub fn abandoned(&mut self, holder: &Arc<str>, asked: RequestSpan) {
        let asked = RequestSpan { answered: asked.answered + ABANDONED_WORK_MAX, ..asked };
        self.abandoned.entry(holder.clone()).or_default().push(asked);
    }

    /// Notes that `session`, held by `holder`, was answered as live for `expires_in_seconds`.
    pub fn renewed(
        &mut self,
        holder: &Arc<str>,
        session: &Arc<str>,
        expires_in_seconds: u64,
        asked: RequestSpan,
    ) {
        let new = || Life {
            holder: holder.clone(),
            since: asked.answered,
            until: asked.sent,
            over: None,
            told_until: Moment::default(),
            renewals: Vec::new(),
        };
        let life = self.lives.entry(session.clone()).or_insert_with(new);
        life.until = life.until.max(asked.sent);
        life.told_until = life.told_until.max(surely_until(asked.sent, expires_in_seconds));
        life.renewals.push(asked);
        if life.over.is_some_and(|over| over <= asked.sent) {
            self.broken(asked.answered, What::Revived { session: session.clone() });
        }
    }

    /// Notes a request that found `session` live and ended it.
    pub fn ended(&mut self, session: &Arc<str>, asked: RequestSpan) {
        let Some(life) = self.lives.get_mut(session) else { return };
        life.until = life.until.max(asked.sent);
        let before = life.over;
        life.is_over_by(asked.answered);
        if before.is_some_and(|over| over <= asked.sent) {
            self.broken(asked.answered, What::Revived { session: session.clone() });
        }
    }

    /// Notes a request that found `session` over. `reason` is the reason in the answer, if any.
    pub fn over(&mut self, session: &Arc<str>, reason: Option<&str>, asked: RequestSpan) {
        let Some(life) = self.lives.get_mut(session) else { return };
        life.is_over_by(asked.answered);
        if reason == Some("expired") && life.told_until > asked.answered {
            self.broken(asked.answered, What::FalseEnd { session: session.clone() });
        }
    }

    /// Adds a violation of the pool found by another check.
    pub fn broken(&mut self, at: Moment, what: What) {
        self.violations.push(Violation { pool: self.pool.clone(), at, what });
    }

    /// Returns the broken promises, after the last request.
    pub fn verdict(mut self) -> Violations {
        self.judge_seats();
        let mut decided = mem::take(&mut self.decided);
        decided.sort_by_key(|decided| decided.asked.sent);
        let lives = mem::take(&mut self.lives);
        let mut by_start: Vec<_> = lives.iter().collect();
        by_start.sort_by_key(|(_, life)| life.since);
        let (mut coming, mut present) = (by_start.into_iter().peekable(), Vec::new());
        for Decided { asked, holder, how } in decided {
            present.extend(std::iter::from_fn(|| coming.next_if(|(_, life)| life.since <= asked.sent)));
            present.retain(|(_, life)| life.until >= asked.sent);
            let live: Vec<_> = present.iter().filter(|(_, life)| life.spans(asked)).copied().collect();
            match how {
                Decision::Denied => self.judge_denial(holder, &live, asked),
                Decision::Admitted { session, limit, victims } => {
                    let others: Vec<_> = live.into_iter().filter(|(id, _)| **id != session).collect();
                    self.judge_limit(others.len() + 1, limit, asked);
                    let victims = victims.iter().filter_map(|victim| lives.get_key_value(victim));
                    victims.for_each(|victim| self.judge_victim(victim, &others, asked));
                }
            }
        }
        self.violations
    }

    /// Promise: no holder is denied for lack of a seat.
    fn judge_denial(&mut self, holder: Arc<str>, live: &[HeldSeat<'_>], asked: RequestSpan) {
        if live.iter().any(|(_, life)| life.holder == holder) {
            self.broken(asked.answered, What::HolderDenied { machine: holder });
        }
    }

    /// Promise: no admission exceeds the limit.
    fn judge_limit(&mut self, held: usize, limit: u32, asked: RequestSpan) {
        if held > limit as usize {
            self.broken(asked.answered, What::AboveLimit { held, seats_total: limit });
        }
    }

    /// Promise: the victim was not surely renewed later than a session that stayed.
    fn judge_victim(&mut self, (victim, life): HeldSeat<'_>, stayed: &[HeldSeat<'_>], asked: RequestSpan) {
        let renewed = life.renewed_from();
        let staler = |life: &Life| renewed > self.renewed_by(life, asked) + CLOCK_GRAIN;
        if let Some((survivor, _)) = stayed.iter().find(|(_, life)| staler(life)) {
            let (victim, survivor) = (victim.clone(), (*survivor).clone());
            self.broken(asked.answered, What::FresherEvicted { victim, survivor });
        }
    }

    /// Returns the latest possible time of a session's last renewal before a request was decided.
    fn renewed_by(&self, life: &Life, decided: RequestSpan) -> Moment {
        let abandoned = self.abandoned.get(&life.holder).into_iter().flatten();
        let before = life.renewals.iter().chain(abandoned).filter(|asked| asked.sent <= decided.answered);
        before.map(|asked| asked.answered).max().unwrap_or_default()
    }

    /// Promise: no holder has two sessions at one instant.
    fn judge_seats(&mut self) {
        let sure = self.lives.iter().filter(|(_, life)| life.since < life.until);
        let mut sure: Vec<_> = sure.map(|(id, life)| (&life.holder, life.since, life.until, id)).collect();
        sure.sort();
        let twice: Vec<_> = sure
            .windows(2)
            .filter_map(|pair| {
                let [(holder, _, until, first), (next_holder, since, _, second)] = pair else { return None };
                let together = holder == next_holder && since < until;
                let sessions = [(*first).clone(), (*second).clone()];
                together.then(|| (*since, What::SecondSeat { machine: (*holder).clone(), sessions }))
            })
            .collect();
        for (at, what) in twice {
            self.broken(at, what);
        }
    }
}

#[cfg(test)]
mod tests;
