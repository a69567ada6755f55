//! The licenses API, as used by the demo's machines.

use serde::Deserialize;
use serde_json::json;

use crate::api_client::{ApiClient, Error, Problem};

/// A server, and the license shared by all machines.
#[derive(Debug)]
pub(super) struct LicenseApi {
    pub(super) api: ApiClient,
    pub(super) license_key: String,
}

/// A machine's seat.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Seat {
    pub session_id: String,
    pub seats_used: u32,
    pub seats_total: u32,
    pub status: String,
}

const ACQUIRE: &str = "/api/v1/licenses/acquire";

impl LicenseApi {
    /// Asks for a seat. Returns the seat, or the problem of a denial.
    pub(super) async fn acquire(&self, machine: &str) -> Result<Result<Seat, Box<Problem>>, Error> {
        let ask = json!({ "license_key": self.license_key, "machine_id": machine });
        match self.api.post(ACQUIRE, ask).await {
            Ok(answer) => Ok(Ok(self.api.read(ACQUIRE, answer)?)),
            Err(Error::Refused(problem)) if problem.status == 403 => Ok(Err(problem)),
            Err(error) => Err(error),
        }
    }

    /// Renews the seat.
    pub(super) async fn heartbeat(&self, session_id: &str) -> Result<(), Error> {
        self.api.patch(&format!("/api/v1/licenses/sessions/{session_id}/heartbeat"), None).await?;
        Ok(())
    }

    /// Releases the seat.
    pub(super) async fn release(&self, session_id: &str) -> Result<(), Error> {
        self.api.delete(&format!("/api/v1/licenses/sessions/{session_id}"), &[]).await?;
        Ok(())
    }
}
