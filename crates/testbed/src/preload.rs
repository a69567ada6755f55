//! Libraries that servers under test load by `LD_PRELOAD`, to replace system calls for clocks and disks.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// A library in C, compiled once per test process.
#[derive(Debug)]
pub(crate) struct Library {
    name: &'static str,
    source: &'static str,
    built: OnceLock<TempDir>,
}

impl Library {
    /// Declares a library. The first call of `path` compiles the source.
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, built: OnceLock::new() }
    }

    /// Returns the compiled library's path, for `LD_PRELOAD`.
    pub(crate) fn path(&self) -> PathBuf {
        self.built.get_or_init(|| self.build()).path().join(self.name).with_extension("so")
    }

    fn build(&self) -> TempDir {
        let prefix = format!("seatkeeper-{}-", self.name);
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir().expect("a directory");
        let base = dir.path().join(self.name);
        let (source, library) = (base.with_extension("c"), base.with_extension("so"));
        fs::write(&source, self.source).expect("the directory is writable");
        let errors = File::create(dir.path().join("errors")).expect("the directory is writable");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library).arg(&source);
        let built = cc.stderr(errors).status();
        let built = built.expect("a C compiler is missing: install gcc (Debian: apt-get install gcc)");
        assert!(built.success(), "{:?}", fs::read_to_string(dir.path().join("errors")));
        open_to_all(&dir);
        dir
    }
}

/// Lets servers under a different user load the library: a temporary directory is private to its creator by
/// default.
fn open_to_all(dir: &TempDir) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("own directory");
}
