//! Usage is put on record window by window, delivered batch by batch, and the books agree.

mod delivering;
mod emitting;
mod fencing;
mod leader_kills;
mod meter;
mod reconciling;
