//! The licenses API as the demonstration's machines use it.

use serde::Deserialize;
use serde_json::json;

use crate::api_client::{ApiClient, Error, Problem};

/// One server, and the license that all machines ask for.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) api: ApiClient,
    pub(super) license_key: String,
}

/// A seat that a machine has.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Seat {
    pub session_id: String,
    pub seats_used: u32,
    pub seats_total: u32,
    pub status: String,
}

const ACQUIRE: &str = "/api/v1/licenses/acquire";

impl Desk {
    /// Asks for a seat: the seat, or why there is none.
    pub(super) async fn acquire(&self, machine: &str) -> Result<Result<Seat, Box<Problem>>, Error> {
        let ask = json!({ "license_key": self.license_key, "machine_id": machine });
        match self.api.post(ACQUIRE, ask).await {
            Ok(answer) => Ok(Ok(self.api.read(ACQUIRE, answer)?)),
            Err(Error::Refused(problem)) if problem.status == 403 => Ok(Err(problem)),
            Err(error) => Err(error),
        }
    }

    /// Says that the holder is still there.
    pub(super) async fn heartbeat(&self, session_id: &str) -> Result<(), Error> {
        self.api.patch(&format!("/api/v1/licenses/sessions/{session_id}/heartbeat"), None).await?;
        Ok(())
    }

    /// Gives the seat back.
    pub(super) async fn release(&self, session_id: &str) -> Result<(), Error> {
        self.api.delete(&format!("/api/v1/licenses/sessions/{session_id}"), &[]).await?;
        Ok(())
    }
}
