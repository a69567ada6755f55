//! Licenses: made, read, changed, ended. Every change binds the live sessions at once.

pub(super) mod answer;
mod apply;
pub(super) mod create;
pub(super) mod list;
pub(super) mod read;
pub(super) mod revoke;
pub(super) mod update;
