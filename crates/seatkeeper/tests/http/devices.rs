//! The device API: a module for each operation or scenario.

mod admit;
mod events;
mod groups;
mod heartbeat;
mod list;
pub(crate) mod player;
mod revoke;
mod survive;
mod terms;
