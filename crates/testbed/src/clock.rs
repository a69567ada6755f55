//! The wall clock of servers under test, which a test turns while they run.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

/// A wall clock for one or more servers. It runs like the machine's own, shifted by what it was turned.
#[derive(Debug)]
pub struct Clock {
    file: NamedTempFile,
    shift_nanos: AtomicI64,
}

impl Clock {
    /// A clock that shows the machine's time.
    pub fn new() -> Self {
        let file = NamedTempFile::new().expect("a temporary file");
        let everybody_reads = fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(everybody_reads).expect("the file is this process's");
        let clock = Self { file, shift_nanos: AtomicI64::new(0) };
        clock.turn(0);
        clock
    }

    /// Turns it forward.
    pub fn advance(&self, by: Duration) {
        self.turn(nanos(by));
    }

    /// Turns it back.
    pub fn set_back(&self, by: Duration) {
        self.turn(-nanos(by));
    }

    /// Makes a server that is started by `command` read this clock.
    pub fn lend_to(&self, command: &mut Command) {
        command.envs(self.environment());
    }

    /// The environment in which a server reads this clock.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", library()), ("TESTBED_CLOCK", self.file.path().to_owned())]
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

/// What a server loads to read another clock, compiled once for all of this process's.
fn library() -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let dir = BUILT.get_or_init(|| {
        let dir = tempfile::Builder::new().prefix("seatkeeper-clock-").tempdir().expect("a directory");
        // Servers may run as another user.
        let everybody_enters = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path(), everybody_enters).expect("the directory is this process's");
        let source = dir.path().join("clock.c");
        fs::write(&source, include_str!("clock.c")).expect("the directory is writable");
        let errors = File::create(dir.path().join("errors")).expect("the directory is writable");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(dir.path().join("clock.so")).arg(&source);
        let built = cc.stderr(errors).status();
        let built = built.expect("a C compiler is missing: install gcc (Debian: apt-get install gcc)");
        assert!(built.success(), "{:?}", fs::read_to_string(dir.path().join("errors")));
        dir
    });
    dir.path().join("clock.so")
}
