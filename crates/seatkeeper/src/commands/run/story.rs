//! Messages to the user of the terminal, on stderr.

use std::fmt::Display;

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
        if !self.quiet {
            eprintln!("seatkeeper: {line}");
        }
    }
}

/// Returns a license key with all but its last four characters masked. A key of at most eight characters is
/// masked whole.
pub(super) fn masked(key: &str) -> String {
    MaskedKey(key).to_string()
}
