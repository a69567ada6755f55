//! Regions, and the homes of subscribers.

pub(super) mod regions;
pub(super) mod relocate;
