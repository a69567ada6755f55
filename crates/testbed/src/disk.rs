//! A disk for servers under test. A test fills the disk while the servers run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::preload::Library;

static LIBRARY: Library = Library::new("disk", include_str!("disk.c"));

/// A disk shared by servers under test. On a full disk, a write that would lengthen a file fails with
/// `ENOSPC`, and a write within the length of a file succeeds.
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
        disk.set(false);
        disk
    }

    /// Fills the disk.
    pub fn fill(&self) {
        self.set(true);
    }

    /// Frees space on the disk.
    pub fn make_room(&self) {
        self.set(false);
    }

    /// Returns the environment variables that put a server on the disk. The server's files must be in the
    /// directory for temporary files.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", LIBRARY.path()), ("TESTBED_DISK", self.file.path().to_owned())]
    }

    fn set(&self, is_full: bool) {
        self.file.as_file().write_all_at(&[u8::from(is_full)], 0).expect("the file is writable");
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}
