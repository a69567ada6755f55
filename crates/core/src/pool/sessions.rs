//! The sessions of a pool, kept by their number as a list or with indexes.

use super::few::{FEW_MAX, Few};
use super::many::Many;
use crate::{Holder, RegistryTime, Session, SessionId, Users};

/// The sessions of a pool. A pool that outgrew the list keeps its indexes when it shrinks.
#[derive(Clone, Debug)]
pub(super) enum Sessions {
    Few(Few),
    // Boxed: few pools are large.
    Many(Box<Many>),
}

impl Default for Sessions {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.as_slice().len(),
            Self::Many(many) => many.len(),
        }
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        match self {
            Self::Few(few) => few.get(id),
            Self::Many(many) => many.get(id),
        }
    }

    pub(super) fn held_by(&self, holder: &Holder) -> Option<&Session> {
        match self {
            Self::Few(few) => few.as_slice().iter().find(|session| session.holder == *holder),
            Self::Many(many) => many.held_by(holder),
        }
    }

    /// Iterates over the sessions. Sessions with the same TTL come from the stalest to the freshest.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        let (few, many) = self.forms();
        few.iter().chain(many.into_iter().flat_map(|many| many.by_ttl().flatten()))
    }

    /// Iterates over the sessions in the order of eviction.
    pub(super) fn stalest_first(&self) -> impl Iterator<Item = &Session> {
        let (few, many) = self.forms();
        few.iter().chain(many.into_iter().flat_map(Many::stalest_first))
    }

    /// Iterates over the sessions renewed after `then`.
    pub(super) fn renewed_since(&self, then: RegistryTime) -> impl Iterator<Item = &Session> {
        let is_newer = move |session: &&Session| session.last_heartbeat > then;
        let (few, many) = self.forms();
        let of_many = many.into_iter().flat_map(move |many| {
            many.by_ttl_newest_first().flat_map(move |queue| queue.take_while(is_newer))
        });
        few.iter().filter(is_newer).chain(of_many)
    }

    /// Iterates over the times at which sessions expire by silence. The `count` soonest times are among them.
    pub(super) fn soonest_silent(&self, count: usize) -> impl Iterator<Item = RegistryTime> {
        let (few, many) = self.forms();
        let of_many =
            many.into_iter().flat_map(move |many| many.by_ttl().flat_map(move |queue| queue.take(count)));
        few.iter().chain(of_many).map(Session::silent_until)
    }

    /// Returns the ids of the sessions that meet `condition`. For sessions with the same TTL, if a session meets the
    /// condition, every staler session must meet the condition.
    pub(super) fn in_turn_while(&self, condition: impl Fn(&Session) -> bool) -> Vec<SessionId> {
        let (few, many) = self.forms();
        let of_few = few.iter().filter(|session| condition(session));
        let of_many = many.into_iter().flat_map(Many::by_ttl);
        let of_many = of_many.flat_map(|queue| queue.take_while(|session| condition(session)));
        of_few.chain(of_many).map(|session| session.id).collect()
    }

    pub(super) fn insert(&mut self, session: Session) {
        match self {
            Self::Few(few) if few.as_slice().len() < FEW_MAX => few.insert(session),
            Self::Few(few) => {
                let mut many = Box::<Many>::default();
                std::mem::take(few)
                    .into_vec()
                    .into_iter()
                    .chain([session])
                    .for_each(|each| many.insert(each));
                *self = Self::Many(many);
            }
            Self::Many(many) => many.insert(session),
        }
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        match self {
            Self::Few(few) => few.remove(id),
            Self::Many(many) => many.remove(id),
        }
    }

    /// Changes the session `id`, and its place in the order. The id and the holder stay.
    pub(super) fn change(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        match self {
            Self::Few(few) => few.change(id, change),
            Self::Many(many) => many.change(id, change),
        }
    }

    /// Returns the users of the session `id`.
    pub(super) fn users_mut(&mut self, id: SessionId) -> Option<&mut Users> {
        match self {
            Self::Few(few) => few.users_mut(id),
            Self::Many(many) => many.users_mut(id),
        }
    }

    /// Returns the sessions of a list, or the form with indexes.
    fn forms(&self) -> (&[Session], Option<&Many>) {
        match self {
            Self::Few(few) => (few.as_slice(), None),
            Self::Many(many) => (&[], Some(many)),
        }
    }

    /// Asserts the invariants of the present form.
    #[cfg(test)]
    pub(super) fn assert_sound(&self) {
        match self {
            Self::Few(few) => {
                assert!(self.len() <= FEW_MAX, "{} sessions have no index", self.len());
                assert!(few.as_slice().is_sorted_by_key(Session::rank), "a list is in the order of eviction");
            }
            Self::Many(many) => many.assert_sound(),
        }
    }
}
