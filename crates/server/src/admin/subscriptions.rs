//! Subscriptions: create, list, read, update, cancel. A change applies from the user's next admission on, and
//! ends no session at once.

pub(super) mod answer;
pub(super) mod cancel;
pub(super) mod create;
pub(super) mod list;
pub(super) mod read;
pub(super) mod update;
mod write;
