//! The sessions of a small pool: a list in the order of eviction. Most pools are small, and a scan of so few
//! sessions is cheaper than hash tables and takes less memory.

use crate::{Session, SessionId, Users};

/// Most sessions in a list.
pub(super) const FEW_MAX: usize = 8;

/// A list of sessions, sorted by rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Few(Vec<Session>);

impl Few {
    pub(super) fn as_slice(&self) -> &[Session] {
        &self.0
    }

    pub(super) fn into_vec(self) -> Vec<Session> {
        self.0
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.0.iter().find(|session| session.id == id)
    }

    pub(super) fn insert(&mut self, session: Session) {
        // Most pools of subscribers hold one or two sessions: the default growth to 4 places would waste memory.
        if self.0.len() < 2 {
            self.0.reserve_exact(1);
        }
        let place = self.0.partition_point(|other| other.rank() < session.rank());
        self.0.insert(place, session);
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let place = self.0.iter().position(|session| session.id == id)?;
        Some(self.0.remove(place))
    }

    /// Returns the users of the session `id`. Users do not affect the order.
    pub(super) fn users_mut(&mut self, id: SessionId) -> Option<&mut Users> {
        self.0.iter_mut().find(|session| session.id == id).map(|session| &mut session.users)
    }

    /// Changes the session `id`, and its place in the order.
    pub(super) fn change(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.0.iter_mut().find(|session| session.id == id) {
            change(session);
            self.0.sort_by_key(Session::rank);
        }
    }
}
