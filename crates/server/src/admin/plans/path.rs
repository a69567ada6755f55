//! Extractor of a plan's name in a path.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use seatkeeper_ledger::plans::PlanName;

use crate::error::Error;

/// A plan's name from the path. An invalid name is refused with `PlanNotFound`, as an unknown plan is.
pub(crate) struct PlanPath(pub(super) PlanName);

impl<S: Send + Sync> FromRequestParts<S> for PlanPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        let name = text.ok().and_then(|Path(text)| text.parse().ok());
        name.map(Self).ok_or(Error::PlanNotFound)
    }
}
