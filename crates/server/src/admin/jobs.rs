//! Jobs: state, history of runs, and runs on request. Jobs belong to the server and not to a tenant.

mod job_path;
pub(super) mod list;
pub(super) mod run_now;
pub(super) mod runs;
