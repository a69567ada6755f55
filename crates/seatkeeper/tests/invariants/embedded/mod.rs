//! Invariants of the embedded server alone: one process, with its ledger in a file.

/// Billing over ninety days. A manual clock drives the registry in the process.
mod billed_exactly;
/// Join codes, which count for ten minutes. A manual clock passes the time.
mod expired_codes;
/// Recovery from the ledger after `kill -9`. With several nodes, sessions live in Redis, and `failover` kills
/// Redis.
mod nothing_answered_is_lost;
/// Ownership of a data directory by one process.
mod one_process_a_directory;
/// Shutdown under load. One process answers every accepted request; nodes that stop together wait for one
/// another's commits.
mod shutdown_answers_all;
