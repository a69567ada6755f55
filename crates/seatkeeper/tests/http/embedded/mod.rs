//! The HTTP API of the embedded server alone: one process, with its ledger in a file. Each module has the
//! reason why the tests are valid in this topology only.

/// Helpers of the tests of tokens, which concern a single process.
mod forge;
mod hostile_tokens;
mod issuer;
/// Time limits and connections of one process.
mod late_bodies;
/// Tokens of one process, as `tokens`.
mod license_tokens;
/// Addresses and tokens of one process.
mod metrics_access;
mod published_keys;
/// A ledger that refuses a record, by a trigger in its file.
mod refused_records;
/// Logs and traces of one process, independent of shared stores.
mod request_ids;
/// Files with secrets, which every process reads on its own.
mod rotation;
/// Time limits of one process, tested with few and with many connections.
mod slow;
/// Sessions whose lookup fails, by a table renamed in the file of the ledger.
mod stream_lookups;
/// Certificate files, which every process reads on its own.
mod tls;
/// Verification of tokens, which every process does on its own.
mod tokens;
/// Spans of one process.
#[cfg(feature = "otlp")]
mod traces;
/// Unknown plans: only the ledger has plans in this topology, while nodes also cache plans in Redis.
mod unknown_limits;
/// A stalled ledger, by a lock on its file. For PostgreSQL, see `failover`.
mod unrecorded;
