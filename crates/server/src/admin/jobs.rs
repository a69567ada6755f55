//! Jobs: how they stand, how their runs went, and run at once. They are the server's, and no tenant's.

mod job_path;
pub(super) mod list;
pub(super) mod run_now;
pub(super) mod runs;
