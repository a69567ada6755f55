//! What is wrong, each for itself. The places where it matters are in `pool.rs`.

use seatkeeper_core::Span;

/// How a registry goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It does not.
    None,
    /// Seats are a number that an acquisition adds one to and a release takes one from, with a TTL that every
    /// acquisition and heartbeat renews. Sessions expire by themselves, and the number hears nothing of it.
    CounterWithTtl,
    /// Holders are a set with one TTL, which every acquisition and heartbeat renews: it is over as a whole.
    SetWithOneTtl,
    /// Whether a seat is free is asked before whether the holder has one.
    CapacityFirst,
    /// Each node says what time it is.
    ClockOfTheCaller,
    /// A full pool makes room by one eviction, whatever its limit has become.
    EvictsExactlyOne,
}

/// A registry with this flaw.
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

/// How far the clocks of two nodes are apart where they count.
pub(crate) const SKEW: Span = Span::from_secs(3_600);
