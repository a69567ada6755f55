//! Pools named by admins: a kind and a name.

use seatkeeper_core::PoolKind;
use serde::Deserialize;
use uuid::Uuid;

use crate::capacities;
use crate::error::Error;

/// A kind of pool, parsed from its name.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PoolKindName(pub(super) PoolKind);

impl TryFrom<String> for PoolKindName {
    type Error = &'static str;
    fn try_from(name: String) -> Result<Self, &'static str> {
        name.parse().map(Self).map_err(|_| "must be `license`, `subscriber`, `capacity` or `group`")
    }
}

impl PoolKindName {
    /// Returns the name of a pool of this kind in normal form, because UUIDs have several spellings. Returns an error of
    /// the field `pool` for a text that names no pool of this kind.
    pub(super) fn pool_name(self, text: &str) -> Result<String, Error> {
        let id = |message| {
            let id = Uuid::try_parse(text).map_err(|_| Error::field("pool", message))?;
            Ok(id.to_string())
        };
        match self.0 {
            PoolKind::License => id("must be a license's id"),
            PoolKind::Group => id("must be a group's id"),
            PoolKind::Subscriber => Ok(text.to_owned()),
            PoolKind::Capacity => capacities::pool_name(text).ok_or_else(|| {
                Error::field("pool", "must be a user's and a capacity's UUID with `/` between")
            }),
        }
    }
}
