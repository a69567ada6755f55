//! What is so only where a server is one process and its ledger is a file.

/// Ninety days pass on a clock of the test's own, which the registry in the process reads.
mod billed_exactly;
/// Live sessions go with the process, and come back from its ledger. Redis keeps them where there are nodes, and
/// is killed in `failover`.
mod nothing_answered_is_lost;
/// A data directory has one owner.
mod one_process_a_directory;
/// What one process had accepted, it answers; nodes that stop together wait for one another's records.
mod shutdown_answers_all;
