//! The HTTP API of a real server. The modules mirror the tree of URLs.
#![allow(clippy::panic, reason = "what a test finds is told by a panic")]

mod house;

mod http {
    pub(crate) mod books;
    pub(crate) mod desk;
    pub(crate) mod exchange;
    pub(crate) mod shown;
    pub(crate) mod until;

    mod admin;
    mod authorization;
    mod licenses;
    mod operations;
    mod tokens;
}
