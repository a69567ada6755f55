//! A wall clock for servers under test. A test sets the clock while the servers run.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::preload::Library;

static LIBRARY: Library = Library::new("clock", include_str!("clock.c"));

/// A wall clock shared by servers under test: the machine's clock plus an adjustable shift.
#[derive(Debug)]
pub struct Clock {
    file: NamedTempFile,
    shift_nanos: AtomicI64,
}

impl Clock {
    /// Creates a clock with the machine's time.
    pub fn new() -> Self {
        let file = NamedTempFile::new().expect("a temporary file");
        let everybody_reads = fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(everybody_reads).expect("the file is this process's");
        let clock = Self { file, shift_nanos: AtomicI64::new(0) };
        clock.turn(0);
        clock
    }

    /// Sets the clock forward.
    pub fn advance(&self, by: Duration) {
        self.turn(nanos(by));
    }

    /// Sets the clock back.
    pub fn set_back(&self, by: Duration) {
        self.turn(-nanos(by));
    }

    /// Returns the environment variables that make a server read the clock.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", LIBRARY.path()), ("TESTBED_CLOCK", self.file.path().to_owned())]
    }

    fn turn(&self, nanos: i64) {
        let shift = self.shift_nanos.fetch_add(nanos, Ordering::SeqCst) + nanos;
        self.file.as_file().write_all_at(&shift.to_ne_bytes(), 0).expect("the file is writable");
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn nanos(span: Duration) -> i64 {
    span.as_nanos().try_into().expect("less than three centuries")
}
