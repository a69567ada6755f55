//! A session: the hold of a client on a seat.

use serde::{Deserialize, Serialize};

use crate::{Holder, RegistryTime, SessionId, Span, UserId};

/// Most users of a session (several people on a licensed machine). Beyond the limit a new user replaces the
/// latest to join. The first user always stays.
pub const USERS_PER_SESSION_MAX: usize = 8;

/// The latest heartbeat of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LatestHeartbeat {
    /// The session.
    pub session: SessionId,
    /// The time of the heartbeat.
    pub at: RegistryTime,
    /// The TTL by which the holder heartbeats.
    pub ttl: Span,
}

/// The tier of a capacity; 0 for kinds of pool without tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tier(pub u8);

/// A live session as seen by the rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// The holder of the seat.
    pub holder: Holder,
    /// The users with the right to heartbeat and release the session.
    pub users: Users,
    /// Time of admission.
    pub started: RegistryTime,
    /// Time of the last renewal, by admission, resumption or heartbeat.
    pub last_heartbeat: RegistryTime,
    /// Lifetime after the last heartbeat: the TTL last told to the client. A shortened TTL binds the session
    /// from the next renewal on, so a promise is never broken.
    pub ttl: Span,
    /// The tier of the session.
    pub tier: Tier,
}

impl Session {
    /// Returns the expiry of the session, without regard to the end of the entitlement.
    pub fn silent_until(&self) -> RegistryTime {
        self.last_heartbeat + self.ttl
    }

    /// Returns the latest heartbeat of the session.
    pub fn latest_heartbeat(&self) -> LatestHeartbeat {
        LatestHeartbeat { session: self.id, at: self.last_heartbeat, ttl: self.ttl }
    }

    /// Returns the sort key of the order of eviction. The least session is evicted first.
    pub fn rank(&self) -> (RegistryTime, RegistryTime, SessionId) {
        (self.last_heartbeat, self.started, self.id)
    }
}

/// The users of a session, nearly always a single user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<UserId>", into = "Vec<UserId>")]
pub struct Users {
    first: UserId,
    // Never an empty list. Double boxing keeps the common case at a single word.
    #[expect(clippy::box_collection, reason = "saves two words in each of millions of sessions")]
    others: Option<Box<Vec<UserId>>>,
}

impl Users {
    /// Creates the list with the admitted user.
    pub fn one(user: UserId) -> Self {
        Self { first: user, others: None }
    }

    /// Returns the admitted user, or the successor if the admitted user has left.
    pub fn first(&self) -> &UserId {
        &self.first
    }

    /// Returns `true` if the session has a single user.
    pub fn is_one(&self) -> bool {
        self.others.is_none()
    }

    /// Iterates over the users, beginning with the first.
    pub fn iter(&self) -> impl Iterator<Item = &UserId> {
        std::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// Returns `true` if `user` is in the list.
    pub fn contains(&self, user: &UserId) -> bool {
        self.first == *user || self.others.iter().any(|others| others.contains(user))
    }

    /// Adds `user` to the session.
    pub fn join(&mut self, user: &UserId) {
        if self.contains(user) {
            return;
        }
        let others = self.others.get_or_insert_default();
        others.truncate(USERS_PER_SESSION_MAX - 2);
        others.push(user.clone());
    }

    /// Removes `user` from a session with several users. Returns `false` if `user` is alone or absent.
    pub fn leave(&mut self, user: &UserId) -> bool {
        let Some(others) = self.others.as_mut() else { return false };
        if self.first == *user {
            // `others` is never an empty list, so `remove(0)` cannot panic.
            self.first = others.remove(0);
        } else {
            let before = others.len();
            others.retain(|other| other != user);
            if others.len() == before {
                return false;
            }
        }
        if others.is_empty() {
            self.others = None;
        }
        true
    }
}

/// Error: a session needs at least one user.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session without users")]
pub struct NoUsers;

impl TryFrom<Vec<UserId>> for Users {
    type Error = NoUsers;

    /// Builds `Users` from a list and keeps the order.
    fn try_from(users: Vec<UserId>) -> Result<Self, NoUsers> {
        let mut users = users.into_iter();
        let mut all = Self::one(users.next().ok_or(NoUsers)?);
        users.for_each(|user| all.join(&user));
        Ok(all)
    }
}

impl From<Users> for Vec<UserId> {
    fn from(users: Users) -> Self {
        users.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
