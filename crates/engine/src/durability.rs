//! The durability of an answer: the point at which a change may be confirmed to the client.

use serde::{Deserialize, Serialize};

/// The wait of an answer to a call that changed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Waits for the commit to the ledger. A confirmed change survives any crash.
    Ledger,
    /// Waits for the registry alone. The registry's journal brings the record to the ledger right after the
    /// answer. The answer waits briefly for a ledger that is far behind (backpressure). Faster than `Ledger`;
    /// a crash can lose changes confirmed in the last moments before.
    Journal,
}
