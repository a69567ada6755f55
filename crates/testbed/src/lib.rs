//! Real servers for tests: started from installed binaries on free ports, and ended by their owner.
//!
//! A server that is not installed is a failure that says what to install.

// A harness has nobody to return an error to: what goes wrong here fails the test that asked for it.
#![allow(clippy::expect_used, clippy::panic)]

pub mod authority;
pub mod clock;
pub mod disk;
pub mod port;
pub mod postgres;
mod preload;
pub mod proxy;
pub mod redis;
