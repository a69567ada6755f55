//! The roll of nodes in Redis. A node without the ledger looks up whether any other node reaches the ledger.

use std::time::Duration;

use redis::{FromRedisValue as _, RedisResult, Value};
use seatkeeper_redis::{Script, Servers};
use uuid::Uuid;

/// The key of the roll. All nodes share this single key.
const ROLL: &str = "sk:{nodes}:roll";

/// Age after which a node's entry is deleted.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);

/// The roll of all nodes on a Redis.
#[derive(Debug)]
pub struct RollCall {
    servers: Servers,
    script: Script,
}

/// A node on the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The node's id.
    pub node: Uuid,
    /// Age of the node's entry by Redis's clock; `None` if the clock went back since.
    pub ago: Option<Duration>,
    /// The node may reach the ledger.
    pub may_reach_ledger: bool,
}

impl RollCall {
    /// Creates the roll on `servers`.
    pub fn new(servers: Servers) -> Self {
        Self { servers, script: Script::new(include_str!("scripts/roll_call.lua")) }
    }

    /// Writes a node's entry, and returns all entries, the node's own included.
    pub async fn answer(&self, node: Uuid, may_reach_ledger: bool) -> RedisResult<Vec<Sighting>> {
        self.call(node, if may_reach_ledger { "1" } else { "0" }).await
    }

    /// Removes the entry of a node that stops.
    pub async fn leave(&self, node: Uuid) -> RedisResult<()> {
        self.call(node, "").await.map(drop)
    }

    async fn call(&self, node: Uuid, state: &str) -> RedisResult<Vec<Sighting>> {
        let mut call = self.script.call([ROLL].into_iter());
        call.arg(node.as_bytes()).arg(state).arg(FORGOTTEN_AFTER.as_millis());
        let values: Vec<Value> = self.servers.run(ROLL, &self.script, &call).await?;
        let (sightings, _) = values.as_chunks();
        Ok(sightings.iter().filter_map(sighting).collect())
    }
}

/// Decodes an entry of the roll; `None` if another program wrote the entry.
fn sighting([node, ago, state]: &[Value; 3]) -> Option<Sighting> {
    let node = Vec::<u8>::from_redis_value(node.clone()).ok()?;
    let Value::Int(ago) = ago else { return None };
    Some(Sighting {
        node: Uuid::from_slice(&node).ok()?,
        ago: u64::try_from(*ago).ok().map(Duration::from_millis),
        may_reach_ledger: *state != Value::Int(0),
    })
}
