//! Load and storms for a Seatkeeper server, with checks of its promises.
//!
//! [`run`] measures a [`Scenario`] in a closed loop: each worker has a connection and sends its next request
//! after the last answer. A storm (feature `storm`, for tests) throws clients at pools that crash, retry and
//! lose answers. A [`Checker`] for each license, and in a storm a [`Witness`] for each pool, verify from the
//! clients' side that no claim was admitted above the limit. A new scenario is a file in `worker` and a line
//! in [`Scenario`].

mod answer;
#[cfg_attr(
    not(feature = "storm"),
    expect(dead_code, reason = "storms make calls that a measurement does not")
)]
mod api;
mod call;
mod checker;
mod connection;
mod error;
mod moment;
mod plan;
mod report;
mod run;
#[cfg(feature = "storm")]
pub mod storm;
mod tally;
mod target;
mod worker;

pub use answer::{Denial, Grant, How};
pub use checker::{Checker, ERROR_WHEN_FULL, Occupancy, RequestSpan, Violation, Violations, What, Witness};
pub use error::{Error, Failure};
pub use moment::{Moment, Stopwatch};
pub use plan::{Bounds, FixedRequest, Plan, Scenario};
pub use report::{OperationReport, Report, ViolationsReport};
pub use run::{Progress, run};
pub use tally::Operation;
pub use target::Target;
