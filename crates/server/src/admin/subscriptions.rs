//! Subscriptions: made, read, changed, cancelled. A change counts from the user's next admission on, and
//! ends nobody.

pub(super) mod answer;
pub(super) mod cancel;
pub(super) mod create;
pub(super) mod list;
pub(super) mod read;
pub(super) mod update;
mod write;
