//! Plans: create, list, read, update, retire. A change applies from the next admission on, and ends no
//! session.

pub(super) mod answer;
mod apply;
pub(super) mod create;
pub(super) mod list;
mod path;
pub(super) mod read;
pub(super) mod retire;
pub(super) mod update;
