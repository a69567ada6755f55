//! Arguments that select a pool by its kind. A new kind of pool is a flag here.

use clap::Args;
use uuid::Uuid;

#[derive(Debug, Args)]
#[group(id = "pool", multiple = false)]
pub(super) struct PoolArgs {
    /// The sessions of this license
    #[arg(long, value_name = "LICENSE_ID")]
    license: Option<Uuid>,
    /// The sessions of this subscriber
    #[arg(long, value_name = "USER")]
    subscriber: Option<String>,
    /// The sessions of this user on this capacity
    #[arg(long, value_name = "USER_ID/CAPACITY_ID", value_parser = capacity)]
    capacity: Option<String>,
    /// The members of this group
    #[arg(long, value_name = "GROUP_ID")]
    group: Option<Uuid>,
}

/// Parses a user and a capacity into the server's name for their pool.
fn capacity(text: &str) -> Result<String, &'static str> {
    let parts =
        text.split_once('/').map(|(user, capacity)| (Uuid::try_parse(user), Uuid::try_parse(capacity)));
    match parts {
        Some((Ok(user), Ok(capacity))) => Ok(format!("{user}/{capacity}")),
        Some(_) | None => Err("want the UUIDs of a user and a capacity with `/` between"),
    }
}

impl PoolArgs {
    /// Returns the kind of the selected pool, if any.
    pub(super) fn kind(&self) -> Option<&'static str> {
        let Self { license, subscriber, capacity, group } = self;
        let license = license.map(|_| "license");
        let named = license.or(subscriber.as_ref().map(|_| "subscriber"));
        named.or(capacity.as_ref().map(|_| "capacity")).or(group.map(|_| "group"))
    }

    /// Returns the name of the selected pool, if any.
    pub(super) fn name(&self) -> Option<String> {
        let Self { license, subscriber, capacity, group } = self;
        let (license, group) = (license.map(|id| id.to_string()), group.map(|id| id.to_string()));
        license.or_else(|| subscriber.clone()).or_else(|| capacity.clone()).or(group)
    }

    /// Returns kind and name as query parameters of the API.
    pub(super) fn filter(&self) -> [(&'static str, Option<String>); 2] {
        [("pool_kind", self.kind().map(Into::into)), ("pool", self.name())]
    }
}
