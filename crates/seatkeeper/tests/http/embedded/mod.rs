//! What is so only where a server is one process and its ledger is a file.

/// Likewise, and which it does not.
mod forge;
mod hostile_tokens;
mod issuer;
/// Tokens of one process, as `tokens`.
mod license_tokens;
/// Time limits and connections of one process.
mod late_bodies;
/// Addresses and tokens of one process.
mod metrics_access;
mod published_keys;
/// What a process logs and sends, which is the same whatever else nodes share.
mod request_ids;
/// Files of secrets, which every process reads for itself.
mod rotation;
/// Time limits of one process, which is asked over few connections and many.
mod slow;
/// Likewise.
mod tls;
/// Which tokens a process believes by which key: no other process has a say in it.
mod tokens;
/// Spans that one process sends.
#[cfg(feature = "otlp")]
mod traces;
/// The ledger is the only place that knows plans; nodes keep them in Redis as well.
mod unknown_limits;
/// The ledger stands still because its file is locked. PostgreSQL is stopped in `failover`.
mod unrecorded;
