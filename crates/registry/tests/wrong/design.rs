//! The flaws of the wrong designs. `pool.rs` has the code of each flaw.

use seatkeeper_core::Span;

/// A flaw of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// No flaw.
    None,
    /// Seats are a counter with a TTL, incremented by an acquisition and decremented by a release. Every
    /// acquisition and heartbeat renews the TTL. Sessions that expire do not decrement the counter.
    CounterWithTtl,
    /// Holders are a set with one TTL, renewed by every acquisition and heartbeat. The set expires as a
    /// whole.
    SetWithOneTtl,
    /// A free seat is checked before the holder's own session.
    CapacityFirst,
    /// Each node supplies its own time.
    ClockOfTheCaller,
    /// A full pool evicts exactly one session, whatever the present limit.
    EvictsExactlyOne,
}

/// A registry with a flaw.
pub(crate) trait Design: Send + Sync + 'static {
    const FLAW: Flaw;
}

macro_rules! designs {
    ($($name:ident => $flaw:ident,)*) => { $(
        pub(crate) struct $name;
        impl Design for $name {
            const FLAW: Flaw = Flaw::$flaw;
        }
    )* };
}

designs! {
    Right => None,
    CounterWithTtl => CounterWithTtl,
    SetWithOneTtl => SetWithOneTtl,
    CapacityFirst => CapacityFirst,
    ClockOfTheCaller => ClockOfTheCaller,
    EvictsExactlyOne => EvictsExactlyOne,
}

/// Difference between the clocks of two nodes, for the flaw of the clocks.
pub(crate) const SKEW: Span = Span::from_secs(3_600);
