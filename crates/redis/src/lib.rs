//! The client of Redis and Valkey: a standalone server, the primary behind Sentinels, or a cluster.
//!
//! [`Servers`] keeps one multiplexed connection to each server and reconnects for ever. A [`Script`] is
//! loaded on a server at its first call. A [`Batcher`] puts concurrent calls into one command.
//! [`Connection::identity`] detects that a server's memory was replaced.
#![forbid(unsafe_code)]

mod batch;
mod cluster;
mod connect;
mod error;
mod figures;
mod link;
mod replicas;
mod script;
mod servers;
mod settings;
mod slot;
mod target;
mod url;

pub use batch::{Batcher, SendBatch};
pub use error::not_reached;
pub use figures::{NoFigures, ServerFigures};
pub use link::{Connection, Link};
pub use replicas::Replicas;
pub use script::Script;
pub use servers::{Answer, Retry, Servers};
pub use settings::{Address, Deployment, Login, Password, ServerSettings, Tls};
pub use slot::{SLOTS, Slot};
