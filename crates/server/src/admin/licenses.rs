//! Licenses: create, list, read, update, revoke. Every change binds the live sessions at once.

pub(super) mod answer;
mod apply;
pub(super) mod create;
pub(super) mod list;
pub(super) mod read;
pub(super) mod revoke;
pub(super) mod update;
