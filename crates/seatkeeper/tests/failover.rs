//! What becomes of seats when Redis fails, on real servers: `docs/failover.md`, one module a failure.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod house;

mod failover {
    mod support;

    mod lost_memory;
    mod several_nodes;
}
