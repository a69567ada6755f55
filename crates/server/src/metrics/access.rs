//! Access to the metrics page: any scrape shows figures of the server, but only a protected scrape shows
//! license ids.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::HeaderMap;

use crate::auth::{Refusal, bearer_of};
use crate::bearer::BearerToken;

/// The series shown to a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// Every series.
    All,
    /// Every series without a tenant's license ids.
    NoTenants,
}

/// The access rule for scrapes.
pub(crate) struct MetricsAccess {
    /// The token that a scrape must present; `None` if no token is required.
    pub(crate) token: Option<BearerToken>,
    /// Says that metrics have a listener of their own.
    pub(crate) is_apart: bool,
}

impl MetricsAccess {
    /// Returns the series for a scrape with `headers`; `Err` if a token is required and `headers` lack the
    /// token.
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
