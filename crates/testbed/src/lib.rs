//! Real servers for tests: started from installed binaries on free ports, and stopped with their owner. A
//! [`storm`] of misbehaving clients runs against a Seatkeeper server.
//!
//! A missing server is a failure that names the package to install.

// A harness cannot return errors to a caller: a failure here fails the test.
#![allow(clippy::expect_used, clippy::panic)]

pub mod authority;
pub mod clock;
pub mod disk;
pub mod port;
pub mod postgres;
mod preload;
pub mod proxy;
pub mod redis;
pub mod storm;
