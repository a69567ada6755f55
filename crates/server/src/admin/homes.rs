//! Homes of subscribers.

pub(super) mod relocate;
