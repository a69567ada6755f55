//! Finds the command's file, before any seat is taken.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::error::RunError;

/// Returns the file for `name`: `name` itself if it has a slash, otherwise the first executable match in `PATH`.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, RunError> {
    let text = || name.to_string_lossy().into_owned();
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
    };
    if let Some(found) = candidates.iter().find(|path| is_executable(path)) {
        return Ok(found.clone());
    }
    match candidates.iter().any(|path| path.exists()) && !name.is_empty() {
        true => Err(RunError::NotExecutable { name: text() }),
        false => Err(RunError::NotFound { name: text() }),
    }
}

/// Returns `true` if this process may execute the file. A bit of the mode is not enough: the file may be another user's, or
/// on a file system without executables. A script without an interpreter is found by `exec` alone.
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file()) && access(path, Access::EXEC_OK).is_ok()
}
