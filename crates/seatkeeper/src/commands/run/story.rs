//! Messages to the user of the terminal, on stderr.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use seatkeeper_client::MaskedKey;

use super::error::RunError;
use crate::commands::sentence;

/// The most messages that wait for a blocked stderr. Later messages are dropped.
const QUEUE_MAX: usize = 64;

/// The time of a message to be written before `run` goes on. A written message stands before the command's next output.
const WRITE_WAIT: Duration = Duration::from_millis(200);

/// The time of the last messages to be written before `run` ends.
const LAST_WRITE_WAIT: Duration = Duration::from_secs(1);

/// A printer of messages and errors. The drop waits up to [`LAST_WRITE_WAIT`] for the last ones.
///
/// A thread of its own writes, because a write may block without end: the reader of a pipe sleeps, or Ctrl-S stops the
/// terminal. Meanwhile heartbeats, signals and deadlines go on.
#[derive(Debug)]
pub(super) struct Story {
    quiet: bool,
    queue: Arc<Queue>,
}

/// Messages that are not written yet, the oldest first.
#[derive(Debug, Default)]
struct Queue {
    lines: Mutex<VecDeque<String>>,
    changed: Condvar,
}

impl Story {
    /// Starts the thread that writes. Returns an error if the system starts no thread.
    pub(super) fn new(quiet: bool) -> io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let writer = queue.clone();
        thread::Builder::new().name("stderr".to_owned()).spawn(move || writer.write())?;
        Ok(Self { quiet, queue })
    }

    /// Prints a message, unless `--quiet` is given. A stderr that blocks delays the caller once, by [`WRITE_WAIT`].
    pub(super) fn tell(&self, line: impl Display) {
        if !self.quiet {
            self.queue.push(format!("seatkeeper: {line}\n"));
        }
    }

    /// Prints an error and its causes. A stderr that blocks delays the caller once, by [`WRITE_WAIT`].
    pub(super) fn fail(&self, error: &RunError) {
        self.queue.push(format!("seatkeeper: {}\n", sentence(error)));
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        self.queue.wait_until_empty(self.queue.lock(), LAST_WRITE_WAIT);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        let is_blocked = !lines.is_empty();
        if lines.len() < QUEUE_MAX {
            lines.push_back(line);
            self.changed.notify_all();
        }
        if !is_blocked {
            self.wait_until_empty(lines, WRITE_WAIT);
        }
    }

    fn wait_until_empty(&self, lines: MutexGuard<'_, VecDeque<String>>, limit: Duration) {
        // A message that is late is written later, or dropped with the process.
        drop(self.changed.wait_timeout_while(lines, limit, |lines| !lines.is_empty()));
    }

    /// Writes the messages until the end of the process.
    fn write(&self) {
        let mut lines = self.lock();
        loop {
            // A message stays in the queue while it is written: an empty queue means that nothing is left to write.
            let Some(line) = lines.front().cloned() else {
                lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(lines);
            if !would_stop() {
                // A closed stderr must not end the run: the command goes on.
                let _ = io::stderr().lock().write_all(line.as_bytes());
            }
            lines = self.lock();
            lines.pop_front();
            self.changed.notify_all();
        }
    }
}

/// Returns `true` if a message would stop `run` in the background: the terminal is set so by `stty tostop`.
fn would_stop() -> bool {
    let stderr = io::stderr();
    let stops = tcgetattr(&stderr).is_ok_and(|terminal| terminal.local_modes.contains(LocalModes::TOSTOP));
    stops && tcgetpgrp(&stderr).is_ok_and(|foreground| foreground != getpgrp())
}

/// Returns a license key with all but its last four characters masked. A key of at most eight characters is
/// masked whole.
pub(super) fn masked(key: &str) -> String {
    MaskedKey(key).to_string()
}
