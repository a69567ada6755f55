//! What the tests share.

pub(super) mod books;
pub(super) mod capacity;
pub(super) mod crowd;
pub(super) mod dice;
pub(super) mod knobs;
pub(super) mod line;
pub(super) mod machine;
pub(super) mod raw;
pub(super) mod scene;
pub(super) mod storm;
pub(super) mod subscriber;
