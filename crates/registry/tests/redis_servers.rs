//! Connections to Redis: losses, changes and refusals, and the registry's recovery.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "redis_servers/batching.rs"]
mod batching;
#[path = "redis_servers/calls.rs"]
mod calls;
#[path = "redis_servers/cluster.rs"]
mod cluster;
#[path = "redis_servers/connection.rs"]
mod connection;
#[path = "redis_servers/evicting.rs"]
mod evicting;
#[path = "redis_servers/finding.rs"]
mod finding;
#[path = "redis_servers/frozen.rs"]
mod frozen;
#[path = "redis_servers/full_memory.rs"]
mod full_memory;
#[path = "redis_servers/journal.rs"]
mod journal;
#[path = "redis_servers/many_ttls.rs"]
mod many_ttls;
#[path = "redis_servers/node.rs"]
mod node;
#[path = "redis_servers/replicas.rs"]
mod replicas;
#[path = "redis_servers/secured.rs"]
mod secured;
#[path = "redis_servers/sentinel.rs"]
mod sentinel;
#[path = "redis_servers/time.rs"]
mod time;
#[path = "redis_servers/unreadable.rs"]
mod unreadable;
