//! The ledger on SQLite. `postgres.rs` runs the same tests on PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

#[path = "place/sqlite.rs"]
mod place;

mod adopting_many;
mod applying;
mod buckets;
mod copies;
mod directory;
mod fields;
mod figures;
mod forgotten_homes;
mod group_contents;
mod homes;
mod homes_adopted;
mod homes_of_lost_regions;
mod homes_with_sessions;
mod homes_with_writes;
mod jobs;
mod licenses;
mod live;
mod node_local;
mod nodes;
mod opening;
mod plans;
mod proving;
mod refusing;
mod release_keys;
mod replays;
mod retaining;
mod schema;
mod searching;
mod sharing;
mod story;
mod subscribers;
mod subscriptions;
mod trusted_time;
mod usage;
mod verifying;
mod verifying_subscribers;
