//! Figures of the servers for metrics: load, memory, clients, evictions.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{ErrorKind, RedisError, RedisResult, Value};

use crate::connect::{self, field, info};
use crate::link::Link;
use crate::servers::Servers;

/// The figures of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFigures {
    /// The server's `run_id`, new at each start of the server.
    pub run: String,
    /// Commands per second, at present.
    pub ops_per_sec: u64,
    /// Bytes of memory in use.
    pub memory_used: u64,
    /// Memory limit in bytes, `None` without a limit.
    pub memory_max: Option<u64>,
    /// Connections of clients.
    pub clients: u64,
    /// Keys evicted for lack of memory since the start of the server.
    pub evicted_keys: u64,
    /// Commands in the slow log since the start of the server, `None` if the user may not read the log.
    pub slow_commands: Option<u64>,
    /// The reason why the server is unfit for seats: the server evicts sessions, or refuses writes.
    pub unfit: Option<String>,
}

/// The reason why a server told no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFigures {
    /// The server does not answer.
    Silent,
    /// The server does not accept the node: the words of the server.
    Rejected(Arc<str>),
}

impl Servers {
    /// Reads the figures of the server, or of every master of a cluster, within `patience`. Empty if no
    /// master is known.
    pub async fn figures(&self, patience: Duration) -> Vec<Result<ServerFigures, NoFigures>> {
        let links = self.links(patience).await;
        join_all(links.iter().map(|link| async move {
            let told = tokio::time::timeout(patience, figures_of(link)).await.ok().and_then(Result::ok);
            told.ok_or_else(|| link.rejection().map_or(NoFigures::Silent, NoFigures::Rejected))
        }))
        .await
    }
}

async fn figures_of(link: &Link) -> RedisResult<ServerFigures> {
    let mut connection = link.up().await?.multiplexed();
    let told = info(&mut connection, &["server", "clients", "memory", "stats"]).await?;
    // The ACL of a user may allow `INFO` and forbid `SLOWLOG`.
    let newest =
        redis::cmd("SLOWLOG").arg("GET").arg(1).query_async::<Vec<Vec<Value>>>(&mut connection).await;
    Ok(ServerFigures {
        run: field(&told, "run_id").unwrap_or_default().to_owned(),
        ops_per_sec: number(&told, "instantaneous_ops_per_sec")?,
        memory_used: number(&told, "used_memory")?,
        memory_max: Some(number(&told, "maxmemory")?).filter(|max| *max > 0),
        clients: number(&told, "connected_clients")?,
        evicted_keys: number(&told, "evicted_keys")?,
        slow_commands: newest.ok().map(|newest| slow_commands(&newest)),
        unfit: connect::unfit_by(&told)
            .or_else(|| link.refusal().map(|why| format!("it refuses writes: {why}"))),
    })
}

fn number(told: &str, name: &'static str) -> RedisResult<u64> {
    let number = field(told, name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        RedisError::from((ErrorKind::UnexpectedReturnType, "INFO tells too little", name.into()))
    })
}

/// Returns the number of commands ever logged: the number of the newest entry + 1, as entries count from 0.
fn slow_commands(newest: &[Vec<Value>]) -> u64 {
    match newest.first().and_then(|entry| entry.first()) {
        Some(Value::Int(number)) => number.unsigned_abs() + 1,
        Some(_) | None => 0,
    }
}
