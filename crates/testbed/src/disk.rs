//! A disk for servers under test. A test fills the disk, or makes the disk read-only, while the servers run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::preload::Library;

/// The state of a disk, as in `disk.c`.
#[derive(Clone, Copy, Debug)]
enum State {
    Writable = 0,
    Full = 1,
    ReadOnly = 2,
}

static LIBRARY: Library = Library::new("disk", include_str!("disk.c"));

/// A disk shared by servers under test. On a full disk, a write that would lengthen a file fails with
/// `ENOSPC`, and a write within the length of a file succeeds. On a read-only disk every write fails with `EROFS`, as after
/// the kernel has mounted a failing disk anew.
#[derive(Debug)]
pub struct Disk {
    file: NamedTempFile,
}

impl Disk {
    /// Creates a disk with free space.
    pub fn new() -> Self {
        let file = NamedTempFile::new().expect("a temporary file");
        // A server may run as a different user, and must be able to read the state file.
        fs::set_permissions(file.path(), Permissions::from_mode(0o644)).expect("this process owns the file");
        let disk = Self { file };
        disk.set(State::Writable);
        disk
    }

    /// Fills the disk.
    pub fn fill(&self) {
        self.set(State::Full);
    }

    /// Makes the disk read-only.
    pub fn refuse_writes(&self) {
        self.set(State::ReadOnly);
    }

    /// Frees space on the disk, and makes the disk writable.
    pub fn mend(&self) {
        self.set(State::Writable);
    }

    /// Returns the environment variables that put a server on the disk. The server's files must be in the
    /// directory for temporary files.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", LIBRARY.path()), ("TESTBED_DISK", self.file.path().to_owned())]
    }

    fn set(&self, state: State) {
        self.file.as_file().write_all_at(&[state as u8], 0).expect("the file is writable");
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}
