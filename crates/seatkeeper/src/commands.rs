//! The commands, a file for each.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod demo;
mod entry;
mod error;
pub(crate) mod jobs;
pub(crate) mod license;
pub(crate) mod migrate;
pub(crate) mod plan;
pub(crate) mod region;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod subscription;
pub(crate) mod token;
pub(crate) mod usage;

pub(crate) use error::{EXIT_FAILED, Error, sentence};
