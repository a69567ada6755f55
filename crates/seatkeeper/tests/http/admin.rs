//! The admin API: a module for each resource.

mod audit;
mod jobs;
mod licenses;
mod plans;
mod sessions;
mod subscriptions;
mod usage;
mod versions;
