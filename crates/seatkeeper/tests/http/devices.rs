mod admit;
mod events;
mod heartbeat;
mod list;
pub(crate) mod player;
mod revoke;
mod survive;
mod terms;
