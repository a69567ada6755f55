//! What the HTTP API promises. The modules mirror the tree of URLs. All of it holds in every topology.

pub(crate) mod books;
pub(crate) mod desk;
pub(crate) mod exchange;
pub(crate) mod shown;
pub(crate) mod until;

mod admin;
mod authorization;
pub(crate) mod capacities;
mod cors;
pub(crate) mod devices;
mod headers;
mod hostile;
mod licenses;
mod limits;
mod metrics;
mod operations;
