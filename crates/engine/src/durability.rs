//! The durability of answers.

use serde::{Deserialize, Serialize};

/// The wait of an answer that changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Its record in the ledger: what was answered is there after any crash.
    Ledger,
    /// The registry alone, whose journal brings the record to the ledger right after, and for a moment the
    /// ledger while that is far behind: faster, and what was answered within the last moments before a crash
    /// can be lost.
    Journal,
}
