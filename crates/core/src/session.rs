//! One client's hold on one seat.

use serde::{Deserialize, Serialize};

use crate::{Holder, RegistryTime, SessionId, Span, UserId};

/// How many users may share one session (several people on one licensed machine). Past it the
/// latest to join gives way; the first user never does.
pub const USERS_PER_SESSION_MAX: usize = 8;

/// A capacity's tier; 0 where tiers mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tier(pub u8);

/// A live session as the rule sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// Who holds the seat.
    pub holder: Holder,
    /// Who acquired it, and so may heartbeat and release it.
    pub users: Users,
    /// When it was admitted.
    pub started: RegistryTime,
    /// When it was last renewed, by admission, resumption or heartbeat.
    pub last_heartbeat: RegistryTime,
    /// How long it lives after its last heartbeat: the TTL that its client was told then. A TTL that
    /// is shortened later binds it from its next renewal on, so no promise is broken.
    pub ttl: Span,
    /// Its tier.
    pub tier: Tier,
}

impl Session {
    /// When it is over unless renewed, the end of its entitlement left aside.
    pub fn silent_until(&self) -> RegistryTime {
        self.last_heartbeat + self.ttl
    }

    /// Its place in the order of eviction: the least goes first.
    pub(crate) fn rank(&self) -> (RegistryTime, RegistryTime, SessionId) {
        (self.last_heartbeat, self.started, self.id)
    }
}

/// The users of a session: one, nearly always.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<UserId>", into = "Vec<UserId>")]
pub struct Users {
    first: UserId,
    // Never empty. Boxed twice so that the common case costs one word.
    #[expect(clippy::box_collection, reason = "a word instead of three in each of millions")]
    others: Option<Box<Vec<UserId>>>,
}

impl Users {
    /// The one who was admitted.
    pub fn one(user: UserId) -> Self {
        Self { first: user, others: None }
    }

    /// The one who was admitted, or who came next if that one left.
    pub fn first(&self) -> &UserId {
        &self.first
    }

    /// All of them, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &UserId> {
        std::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// Whether `user` is one of them.
    pub fn contains(&self, user: &UserId) -> bool {
        self.first == *user || self.others.iter().any(|others| others.contains(user))
    }

    /// Lets `user` share the session.
    pub fn join(&mut self, user: &UserId) {
        if self.contains(user) {
            return;
        }
        let others = self.others.get_or_insert_default();
        others.truncate(USERS_PER_SESSION_MAX - 2);
        others.push(user.clone());
    }

    /// Takes `user` out if others share the session, and says whether it did.
    pub fn leave(&mut self, user: &UserId) -> bool {
        let Some(others) = self.others.as_mut() else { return false };
        if self.first == *user {
            // There is one: nobody else is no list at all.
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

/// A list of users without any.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session without users")]
pub struct NoUsers;

impl TryFrom<Vec<UserId>> for Users {
    type Error = NoUsers;

    /// Returns the users of a list, in its order.
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
