//! Plans: made, read, changed, retired. A change counts from the next admission on, and ends nobody.

pub(super) mod answer;
mod apply;
pub(super) mod create;
pub(super) mod list;
mod path;
pub(super) mod read;
pub(super) mod retire;
pub(super) mod update;
