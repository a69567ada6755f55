//! The HTTP API of a real server. The modules mirror the tree of URLs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test finds, a panic tells"
)]
#![allow(clippy::needless_pass_by_value, reason = "a JSON value is written where it is passed")]

mod house;

mod http {
    pub(crate) mod books;
    pub(crate) mod desk;
    pub(crate) mod exchange;
    pub(crate) mod shown;
    pub(crate) mod until;

    mod admin;
    mod authorization;
    mod capacities;
    mod devices;
    mod hostile;
    mod licenses;
    mod operations;
    mod tokens;
}
