//! Access to the page of metrics: anyone may see figures of the server, but license ids only where the scrape is protected.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::HeaderMap;

use crate::auth::{Refusal, bearer_of};
use crate::bearer::BearerToken;

/// The series that a scrape is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// Every series.
    All,
    /// Every series but those that name a tenant's licenses.
    NoTenants,
}

/// The rule for scrapes.
pub(crate) struct MetricsAccess {
    /// The token that a scrape must show; `None` if none is asked for.
    pub(crate) token: Option<BearerToken>,
    /// Says that metrics have an address of their own.
    pub(crate) is_apart: bool,
}

impl MetricsAccess {
    /// Returns the series that a scrape with these headers is shown; `Err` if it must show a token and does not.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Series, Refusal> {
        let Some(token) = &self.token else {
            return Ok(if self.is_apart { Series::All } else { Series::NoTenants });
        };
        let shown = bearer_of(headers)?;
        verify_slices_are_equal(shown.as_bytes(), token.now().reveal().as_bytes())
            .map_err(|_| Refusal::OtherToken)?;
        Ok(Series::All)
    }
}
