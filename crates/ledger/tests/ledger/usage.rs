//! Usage is recorded in windows and delivered in batches, and the books agree.

mod delivering;
mod emitting;
mod fencing;
mod leader_kills;
mod meter;
mod reconciling;
