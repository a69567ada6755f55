//! The roll of nodes in Redis. Nodes without the ledger look up on the roll whether another node reaches the ledger.

use std::time::Duration;

use redis::{FromRedisValue as _, RedisResult, Value};
use seatkeeper_redis::{Script, Servers};
use uuid::Uuid;

/// The key of the roll: a single key, because all nodes must see the same roll.
const ROLL: &str = "sk:{nodes}:roll";

/// A node that has not answered for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);

/// The roll of all nodes over the same Redis.
#[derive(Debug)]
pub struct RollCall {
    servers: Servers,
    script: Script,
}

/// A node on the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The node.
    pub node: Uuid,
    /// How long ago it answered, by the clock of Redis; none: that clock has gone back since.
    pub ago: Option<Duration>,
    /// The node may reach the ledger.
    pub may_reach_ledger: bool,
}

impl RollCall {
    /// The roll on these servers.
    pub fn new(servers: Servers) -> Self {
        Self { servers, script: Script::new(include_str!("scripts/roll_call.lua")) }
    }

    /// Answers for a node, and returns the nodes on the roll, this one included.
    pub async fn answer(&self, node: Uuid, may_reach_ledger: bool) -> RedisResult<Vec<Sighting>> {
        self.call(node, if may_reach_ledger { "1" } else { "0" }).await
    }

    /// Takes a node off the roll that stops.
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

/// A node as the script tells of it; none if another program wrote it.
fn sighting([node, ago, state]: &[Value; 3]) -> Option<Sighting> {
    let node = Vec::<u8>::from_redis_value(node.clone()).ok()?;
    let Value::Int(ago) = ago else { return None };
    Some(Sighting {
        node: Uuid::from_slice(&node).ok()?,
        ago: u64::try_from(*ago).ok().map(Duration::from_millis),
        may_reach_ledger: *state != Value::Int(0),
    })
}
