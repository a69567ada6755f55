//! Tells a failed `exec` from an end of the command: a pipe from the process between fork and command to `run`.
//!
//! The process writes the reason of a failed `exec` into the pipe. An `exec` that succeeds closes the pipe empty.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::RawFd;

use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};

/// The folder of this process's open files.
#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";
#[cfg(not(target_os = "linux"))]
const OPEN_FILES: &str = "/dev/fd";

/// The longest reason that is read, in bytes. The text of an error of the system is far shorter.
const REASON_BYTES_MAX: usize = 1_024;

/// The end of the pipe at `run`.
#[derive(Debug)]
pub(super) struct ExecFailure(PipeReader);

/// Creates the pipe. Every process that starts before the drop of the writer inherits the writer.
pub(super) fn pipe() -> io::Result<(ExecFailure, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    fcntl_setfd(&writer, FdFlags::empty())?;
    Ok((ExecFailure(reader), writer))
}

impl ExecFailure {
    /// Returns the reason of a failed `exec`, and `None` after an `exec` that succeeded. Call this after the end of the
    /// process, which has written the reason by then.
    pub(super) fn reason(mut self) -> Option<io::Error> {
        let mut reason = [0; REASON_BYTES_MAX];
        match self.0.read(&mut reason) {
            Ok(length @ 1..) => Some(io::Error::other(String::from_utf8_lossy(&reason[..length]))),
            // A pipe that is empty, or cannot be read, proves no failure.
            Ok(0) | Err(_) => None,
        }
    }
}

/// Takes over the inherited writer with this number. The returned file is closed by `exec`, so the command inherits no
/// writer.
pub(super) fn take_over(number: RawFd) -> io::Result<File> {
    let writer = OpenOptions::new().write(true).open(format!("{OPEN_FILES}/{number}"));
    nix::unistd::close(number)?;
    writer
}
