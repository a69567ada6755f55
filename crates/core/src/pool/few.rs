//! The sessions of a small pool: a list in the order of eviction. Most pools are small, and a scan of so few
//! sessions is cheaper than hash tables and takes less memory.

use std::{mem, slice};

use crate::{Session, SessionId, Users};

/// Most sessions in a list.
pub(super) const FEW_MAX: usize = 8;

/// A list of sessions, sorted by rank. Most pools of licenses and subscribers have a single session, kept
/// without an allocation.
#[derive(Clone, Debug)]
pub(super) enum Few {
    One(Session),
    List(Vec<Session>),
}

impl Default for Few {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Few {
    pub(super) fn as_slice(&self) -> &[Session] {
        match self {
            Self::One(session) => slice::from_ref(session),
            Self::List(sessions) => sessions,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Session] {
        match self {
            Self::One(session) => slice::from_mut(session),
            Self::List(sessions) => sessions,
        }
    }

    pub(super) fn into_vec(self) -> Vec<Session> {
        match self {
            Self::One(session) => vec![session],
            Self::List(sessions) => sessions,
        }
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.as_slice().iter().find(|session| session.id == id)
    }

    pub(super) fn insert(&mut self, session: Session) {
        if self.as_slice().is_empty() {
            *self = Self::One(session);
            return;
        }
        let mut sessions = match mem::take(self) {
            // Most pools of subscribers hold one or two sessions: the default growth to 4 places would waste memory.
            Self::One(first) => {
                let mut sessions = Vec::with_capacity(2);
                sessions.push(first);
                sessions
            }
            Self::List(sessions) => sessions,
        };
        let place = sessions.partition_point(|other| other.rank() < session.rank());
        sessions.insert(place, session);
        *self = Self::List(sessions);
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let place = self.as_slice().iter().position(|session| session.id == id)?;
        match self {
            Self::One(_) => mem::take(self).into_vec().pop(),
            Self::List(sessions) => Some(sessions.remove(place)),
        }
    }

    /// Returns the users of the session `id`. Users do not affect the order.
    pub(super) fn users_mut(&mut self, id: SessionId) -> Option<&mut Users> {
        self.as_mut_slice().iter_mut().find(|session| session.id == id).map(|session| &mut session.users)
    }

    /// Changes the session `id`, and its place in the order.
    pub(super) fn change(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        let sessions = self.as_mut_slice();
        if let Some(session) = sessions.iter_mut().find(|session| session.id == id) {
            change(session);
            sessions.sort_by_key(Session::rank);
        }
    }
}
