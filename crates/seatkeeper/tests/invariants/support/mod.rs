//! Helpers of the invariants' tests.
#![allow(dead_code, reason = "each topology uses a part of the module")]

pub(crate) mod books;
pub(crate) mod capacity;
pub(crate) mod crowd;
pub(crate) mod dice;
pub(crate) mod knobs;
pub(crate) mod line;
pub(crate) mod machine;
pub(crate) mod raw;
pub(crate) mod scene;
pub(crate) mod storm;
pub(crate) mod subscriber;
