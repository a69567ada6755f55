//! The disk of servers under test, which a test fills while they run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::preload::Library;

static LIBRARY: Library = Library::new("disk", include_str!("disk.c"));

/// A disk for one or more servers. On a full disk each file keeps its length: a write that would make a file longer
/// fails with `ENOSPC`, and a write within its length succeeds.
#[derive(Debug)]
pub struct Disk {
    file: NamedTempFile,
}

impl Disk {
    /// A disk with room.
    pub fn new() -> Self {
        let file = NamedTempFile::new().expect("a temporary file");
        // A server may run as another user, which reads the state of the disk here.
        fs::set_permissions(file.path(), Permissions::from_mode(0o644)).expect("it is ours");
        let disk = Self { file };
        disk.set(false);
        disk
    }

    /// Leaves no room from now on.
    pub fn fill(&self) {
        self.set(true);
    }

    /// Makes room again.
    pub fn make_room(&self) {
        self.set(false);
    }

    /// The environment in which a server writes to this disk. Its files must be in the directory for temporary ones.
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
