//! What the tests share.
#![allow(dead_code, reason = "not every topology uses all of it")]

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
