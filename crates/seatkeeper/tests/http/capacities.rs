//! The capacity API: a module for each operation or scenario.

mod abroad;
mod events;
mod over;
pub(crate) mod place;
mod put;
mod read_and_find;
mod release;
mod restart;
