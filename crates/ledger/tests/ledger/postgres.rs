//! The ledger on PostgreSQL: the tests of `main.rs` except tests of files, and tests of several nodes on one
//! database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

#[path = "place/postgres.rs"]
mod place;

mod adopting;
mod adopting_many;
mod applying;
mod buckets;
mod copies;
mod encoding;
mod fields;
mod figures;
mod forgotten_homes;
mod homes;
mod homes_adopted;
mod homes_of_lost_regions;
mod homes_with_sessions;
mod homes_with_writes;
mod jobs;
mod licenses;
mod live;
mod locking;
mod node_local;
mod nodes;
mod opening;
mod planning;
mod plans;
mod pooler;
mod proving;
mod refusing;
mod release_keys;
mod replays;
mod retaining;
mod schemas;
mod searching;
mod sharing;
mod silent;
mod sole_use;
mod story;
mod subscribers;
mod subscriptions;
mod trusted_time;
mod usage;
mod verifying;
mod verifying_subscribers;
mod young;
