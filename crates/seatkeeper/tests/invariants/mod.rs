//! Invariants of the product, valid in every topology. A new invariant is a module of its own.

pub(crate) mod support;

mod devices_within_the_limit;
mod ended_stays_ended;
mod groups_within_the_plan;
mod highest_tier_wins;
mod nobody_on_time_is_ended;
mod one_holder_one_seat;
mod one_identity_one_screen;
mod one_request_one_capacity;
mod seats_come_back;
mod storm_within_the_limit;
