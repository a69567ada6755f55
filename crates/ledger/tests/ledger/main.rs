//! The ledger on a real file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod applying;
mod jobs;
mod licenses;
mod opening;
mod plans;
mod proving;
mod retaining;
mod schema;
mod searching;
mod story;
mod subscribers;
mod subscriptions;
mod usage;
mod verifying;
mod verifying_subscribers;
