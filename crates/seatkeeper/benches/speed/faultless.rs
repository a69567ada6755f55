//! Runs of a load in which every answer is as expected.

use seatkeeper_load::{Plan, Report};

use crate::error::Error;

/// Runs a load. Returns `Err` if an answer was unexpected or a promise was broken.
pub(crate) async fn answered(plan: &Plan) -> Result<Report, Error> {
    checked(seatkeeper_load::run(plan.clone(), |_| ()).await?)
}

/// Returns the report of a load. Returns `Err` if an answer was unexpected or a promise was broken.
pub(crate) fn checked(report: Report) -> Result<Report, Error> {
    if report.errors_total() > 0 || report.violations.count > 0 {
        let why = format!("{:?} {:?}", report.errors, report.violations);
        return Err(Error::Worthless { why });
    }
    Ok(report)
}
