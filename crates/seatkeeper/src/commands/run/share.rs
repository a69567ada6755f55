//! Runs that share a seat: the last of the runs to end gives the seat back.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use seatkeeper_client::StateDir;

use super::args::RunArgs;
use super::holder::RunHolder;

/// The interval between two tries to lock the file of a holder.
const RETRY: Duration = Duration::from_millis(20);
/// The bytes of the digest in a file name, as two hexadecimal digits each.
const NAME_BYTES: usize = 16;

/// The presence of a run among the runs with the same holder.
///
/// Each run has a shared lock of the holder's file. The operating system unlocks the file at the end of the process, so a
/// killed run is no longer present.
#[derive(Debug)]
pub(super) struct Share {
    path: PathBuf,
    file: File,
}

/// The last presence of a holder. Runs that start now wait for the drop, and thereby for the release of the seat.
#[derive(Debug)]
pub(super) struct LastShare(Share);

impl Share {
    /// Joins the runs of the holder. Waits while the last run before gives the seat back.
    pub(super) async fn join(args: &RunArgs, license: &str, holder: &RunHolder) -> io::Result<Self> {
        let path = directory()?.join(file_name(args, license, holder));
        loop {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            match file.try_lock_shared() {
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, file }),
                // The last run removed the file after the open.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => tokio::time::sleep(RETRY).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Leaves the runs of the holder. Returns `None` if a run is left to keep the seat.
    pub(super) fn leave(self) -> Option<LastShare> {
        // Of two simultaneous leaves, the second to unlock finds the first gone, and is the last.
        self.file.unlock().ok()?;
        self.file.try_lock().ok()?;
        // Another run was the last, and has removed the file.
        is_at(&self.file, &self.path).then_some(LastShare(self))
    }
}

impl Drop for LastShare {
    fn drop(&mut self) {
        // A file that stays does no harm.
        let _ = fs::remove_file(&self.0.path);
    }
}

/// Returns the folder of the holders' files, and makes the folder if it is missing.
fn directory() -> io::Result<PathBuf> {
    let base = StateDir::default_path().map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let path = base.join("run");
    DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    Ok(path)
}

/// Returns the name of a holder's file. The name shows no license key.
fn file_name(args: &RunArgs, license: &str, holder: &RunHolder) -> String {
    let mut digest = Context::new(&SHA256);
    for part in [&args.server, &args.tenant, license, &holder.machine, &holder.instance] {
        digest.update(&part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    let mut name = String::new();
    for byte in digest.finish().as_ref().iter().take(NAME_BYTES) {
        // Writing to a `String` cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name + ".lock"
}

/// Returns `true` if `path` names the open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
