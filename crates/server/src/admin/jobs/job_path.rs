//! Extractor of a job's name in a path.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use seatkeeper_ledger::jobs::JobName;

use crate::app::App;
use crate::error::Error;

/// The name of a job that this server runs. A different name is refused with `JobNotFound`.
pub(crate) struct JobPath(pub(super) JobName);

impl FromRequestParts<App> for JobPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let text = Path::<String>::from_request_parts(parts, app).await;
        let name = text.ok().and_then(|Path(text)| text.parse().ok());
        name.filter(|name| app.jobs.has(*name)).map(Self).ok_or(Error::JobNotFound)
    }
}
