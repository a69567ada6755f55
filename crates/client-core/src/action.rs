//! Actions of the machine, for the driver.

use crate::request::{Request, RequestId};
use crate::state::State;

/// An action for the driver, to be carried out in the order of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send the request, and report its outcome.
    Send(Request),
    /// Abort the request. The machine ignores a late outcome.
    Cancel(RequestId),
    /// Replace the rejected token, then report
    /// [`Event::TokenReady`](crate::Event::TokenReady) or [`Event::TokenFailed`](crate::Event::TokenFailed).
    RefreshToken,
    /// Tell the program the new state. A change of the deadline alone is not reported.
    Tell(State),
    /// The release is over; the machine sends nothing more.
    Finish(Finish),
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The server holds no seat for this holder: the server said so, or no request could take a seat.
    GivenBack,
    /// The server may hold a seat for this holder. The seat is free one TTL after the last acquire or heartbeat at the
    /// latest.
    Unconfirmed,
}
