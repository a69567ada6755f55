//! The live sessions of a pool, in the form that the rule needs.
//!
//! Invariant: a holder has at most one session in a pool.

mod few;
mod index;
mod many;
mod queue;
mod sessions;

use crate::rule::EVICTIONS_MAX;
use crate::{Holder, RegistryTime, Seats, Session, SessionId, Span, Terms, UserId};
use sessions::Sessions;

/// The live sessions of a pool, and the newest terms seen by the pool.
///
/// Every operation takes constant time in the number of seats, unless its doc states a different cost.
///
/// A pool too large to load for each decision can be a [partial view](Self::in_view). Methods of a partial
/// view then cover the loaded sessions only, unless their docs say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    terms: Option<Terms>,
    content: Content,
}

/// The sessions of a pool, loaded completely or in part.
#[derive(Clone, Debug)]
enum Content {
    Whole(Sessions),
    // Boxed: pools kept in memory are always loaded completely.
    Part(Box<(Sessions, Others)>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Whole(Sessions::default())
    }
}

/// The sessions of a pool outside a partial view. Each is live; only the count and a bound are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Number of sessions outside the view.
    pub count: u32,
    /// Lower bound of last heartbeat + TTL over the sessions outside the view.
    pub silent_from: RegistryTime,
}

impl Pool {
    /// Creates an empty pool with the given terms.
    pub fn new(terms: Option<Terms>) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Creates a partial view of a pool, with the sessions required by a [`LoadBound`](crate::LoadBound).
    ///
    /// The caller guarantees distinct holders and distinct ids over the whole pool.
    pub fn in_view(
        terms: Option<Terms>,
        sessions: impl IntoIterator<Item = Session>,
        others: Others,
    ) -> Self {
        let mut pool = Self::new(terms);
        if others.count > 0 {
            pool.content = Content::Part(Box::new((Sessions::default(), others)));
        }
        let mut sessions: Vec<_> = sessions.into_iter().collect();
        // In the order of ranks: each session goes to the end of a queue at once.
        sessions.sort_unstable_by_key(Session::rank);
        for session in sessions {
            pool.insert(session);
        }
        pool
    }

    /// Returns the newest terms seen by the pool.
    pub fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// Returns the number of sessions, including sessions outside the view and sessions past their expiry
    /// that were not ended yet.
    pub fn live(&self) -> u32 {
        self.sessions().len() as u32 + self.others().map_or(0, |others| others.count)
    }

    /// Returns `true` if the pool has no session.
    pub fn is_empty(&self) -> bool {
        self.live() == 0
    }

    /// Returns the session `id`.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions().get(id)
    }

    /// Returns the session of `holder`.
    pub fn held_by(&self, holder: &Holder) -> Option<&Session> {
        self.sessions().held_by(holder)
    }

    /// Returns the first session in the order of eviction (last heartbeat, start, id).
    pub fn stalest(&self) -> Option<&Session> {
        self.stalest_first().next()
    }

    /// Iterates over the sessions. Sessions with the same TTL come from the stalest to the freshest.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.sessions().iter()
    }

    /// Iterates over the sessions in the order of eviction (last heartbeat, start, id). Lazy: the cost grows
    /// with the number of sessions taken.
    pub fn stalest_first(&self) -> impl Iterator<Item = &Session> {
        self.sessions().stalest_first()
    }

    /// Iterates over the sessions renewed after `then`. The cost grows with the number of renewed sessions
    /// only.
    pub fn renewed_since(&self, then: RegistryTime) -> impl Iterator<Item = &Session> {
        self.sessions().renewed_since(then)
    }

    /// Returns the expiry of `session`: last heartbeat + TTL, or the end of the entitlement if earlier.
    pub fn expiry_of(&self, session: &Session) -> RegistryTime {
        self.within_entitlement(session.silent_until())
    }

    /// Returns the longer of a session's `ttl` and the pool's: a holder heartbeats by the TTL of the last answer.
    pub(crate) fn longest_ttl(&self, ttl: Span) -> Span {
        self.terms.map_or(ttl, |terms| terms.ttl.max(ttl))
    }

    /// Returns the earliest expiry in the pool, `None` for an empty pool. For a partial view the result is a
    /// lower bound.
    pub fn next_expiry(&self) -> Option<RegistryTime> {
        let in_view = self.sessions().soonest_silent(1).min();
        let others = self.others().map(|others| others.silent_from);
        let silent = in_view.into_iter().chain(others).min()?;
        Some(self.within_entitlement(silent))
    }

    /// Returns the earliest time at which the pool falls below `limit` if no holder renews. If more than
    /// [`EVICTIONS_MAX`] sessions have to go, returns the time at which that many are gone: a lower bound. `None` if the
    /// pool is already below, or under a limit of 0. The cost grows with the number of sessions above the limit, up to
    /// the bound.
    pub fn below_limit_at(&self, limit: Seats) -> Option<RegistryTime> {
        if limit == Seats(0) {
            return None;
        }
        let last = self.live().checked_sub(limit.0)?.min(EVICTIONS_MAX - 1) as usize;
        let mut soonest: Vec<_> = self.sessions().soonest_silent(last + 1).collect();
        soonest.sort_unstable();
        soonest.get(last).map(|&at| self.within_entitlement(at))
    }

    /// Adds a session. The holder and the id must be new to the pool.
    pub(crate) fn insert(&mut self, session: Session) {
        debug_assert!(self.held_by(&session.holder).is_none());
        self.sessions_mut().insert(session);
    }

    /// Removes the session `id`.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.sessions_mut().remove(id)
    }

    /// Renews the session `id` at `now` for `ttl`. A given `user` joins the session.
    pub(crate) fn renew(&mut self, id: SessionId, ttl: Span, now: RegistryTime, user: Option<&UserId>) {
        self.sessions_mut().change(id, |session| {
            session.last_heartbeat = session.last_heartbeat.max(now);
            session.ttl = ttl;
            if let Some(user) = user {
                session.users.join(user);
            }
        });
    }

    /// Removes `user` from a session with several users. Returns `false` if nothing changed.
    pub(crate) fn leave(&mut self, id: SessionId, user: &UserId) -> bool {
        self.sessions_mut().users_mut(id).is_some_and(|users| users.leave(user))
    }

    /// Adopts `terms` if newer than the known terms, or the TTL alone of terms of the same version. Returns `false`
    /// if nothing changed.
    pub(crate) fn learn(&mut self, terms: Terms) -> bool {
        let before = self.terms;
        self.terms = Terms::newest(before, Some(terms));
        self.terms != before
    }

    /// Returns the sessions past their expiry at `now`. The cost grows with the number of returned sessions
    /// only.
    pub(crate) fn over(&self, now: RegistryTime) -> Vec<SessionId> {
        let all = self.within_entitlement(RegistryTime::MAX) <= now;
        self.sessions().in_turn_while(|session| all || session.silent_until() <= now)
    }

    fn sessions(&self) -> &Sessions {
        match &self.content {
            Content::Whole(sessions) => sessions,
            Content::Part(part) => &part.0,
        }
    }

    fn sessions_mut(&mut self) -> &mut Sessions {
        match &mut self.content {
            Content::Whole(sessions) => sessions,
            Content::Part(part) => &mut part.0,
        }
    }

    fn others(&self) -> Option<&Others> {
        match &self.content {
            Content::Whole(_) => None,
            Content::Part(part) => Some(&part.1),
        }
    }

    fn within_entitlement(&self, expiry: RegistryTime) -> RegistryTime {
        let ends_at = self.terms.and_then(|terms| terms.ends_at);
        ends_at.map_or(expiry, |ends_at| expiry.min(ends_at))
    }
}

#[cfg(test)]
mod tests;
