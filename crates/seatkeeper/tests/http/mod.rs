//! The promises of the HTTP API, valid in every topology. The modules mirror the tree of URLs; tests of the
//! embedded server alone are in `embedded`.

pub(crate) mod books;
pub(crate) mod exchange;
pub(crate) mod raw_json;
pub(crate) mod shown;
pub(crate) mod tenant_client;
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
