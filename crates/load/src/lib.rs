//! Load for a Seatkeeper server, with checks of its promises.
//!
//! [`run`] measures a [`Scenario`] in a closed loop: each worker has a connection and sends its next request
//! after the last answer. A [`Checker`] for each license verifies from the clients' side that no claim was
//! admitted above the limit. A [`Witness`] verifies it for pools with evictions. A new scenario is a file in
//! `worker` and a line in [`Scenario`].

mod answer;
pub mod api;
mod call;
mod checker;
mod connection;
mod error;
mod moment;
mod plan;
mod report;
mod run;
mod tally;
mod target;
mod worker;

pub use answer::{Denial, Grant, How, Renewal};
pub use call::Call;
pub use checker::{Checker, ERROR_WHEN_FULL, Occupancy, RequestSpan, Violation, Violations, What, Witness};
pub use connection::{Connection, Reply};
pub use error::{Error, Failure};
pub use moment::{Moment, Stopwatch};
pub use plan::{Bounds, FixedRequest, Plan, Scenario};
pub use report::{OperationReport, Report, ViolationsReport};
pub use run::{Progress, run};
pub use tally::Operation;
pub use target::Target;
