//! Messages to the user of the terminal, on stderr.

use std::fmt::Display;
use std::io::{self, Write as _};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use seatkeeper_client::MaskedKey;

/// A printer of messages, silent with `--quiet`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Story {
    quiet: bool,
}

impl Story {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Prints a message.
    pub(super) fn tell(self, line: impl Display) {
        if !self.quiet && !would_stop() {
            // A closed stderr must not end the run: the command goes on.
            let _ = writeln!(io::stderr().lock(), "seatkeeper: {line}");
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
