//! What servers tell of themselves, for those who watch over them.

use std::time::Duration;

use futures_util::future::join_all;
use redis::{ErrorKind, RedisError, RedisResult, Value};

use super::connect::{self, field, info};
use super::link::{Link, not_reached};
use super::servers::Servers;

/// What one server tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFigures {
    /// Its run: it changes when the server is started anew.
    pub run: String,
    /// Commands that it carries out a second at present.
    pub ops_per_sec: u64,
    /// Bytes of memory that it uses.
    pub memory_used: u64,
    /// Bytes of memory that it may use; none: as many as there are.
    pub memory_max: Option<u64>,
    /// Connections of clients.
    pub clients: u64,
    /// Keys that it has thrown away since it was started, for lack of memory.
    pub evicted_keys: u64,
    /// Commands that it has found slow since it was started; none: it does not tell.
    pub slow_commands: Option<u64>,
    /// The reason for which the server is not fit for seats: it would evict sessions, or it refuses writes.
    pub unfit: Option<String>,
}

impl Servers {
    /// What each of the servers tells of itself within `patience`, or why it does not. Of a cluster, each master; none
    /// if no master is known.
    pub async fn figures(&self, patience: Duration) -> Vec<RedisResult<ServerFigures>> {
        let links = self.links(patience).await;
        join_all(links.iter().map(|link| async move {
            let told = tokio::time::timeout(patience, told_by(link)).await;
            told.unwrap_or_else(|_| Err(not_reached("it does not answer in time")))
        }))
        .await
    }
}

async fn told_by(link: &Link) -> RedisResult<ServerFigures> {
    let mut connection = link.up().await?.connection();
    let told = info(&mut connection, &["server", "clients", "memory", "stats"]).await?;
    // A user may be allowed the one and not the other.
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

/// The entries of the slow log are numbered from 0 on, and the newest comes first.
fn slow_commands(newest: &[Vec<Value>]) -> u64 {
    match newest.first().and_then(|entry| entry.first()) {
        Some(Value::Int(number)) => number.unsigned_abs() + 1,
        Some(_) | None => 0,
    }
}
