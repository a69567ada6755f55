//! Tests of the admission rule: clause by clause, as properties over random runs, and against a naive
//! reference implementation.
#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

mod entitlement;
mod equality;
mod full;
mod held;
mod named;
mod other_steps;
mod over;
mod properties;
mod reference;
mod runs;
mod scene;
mod view;
