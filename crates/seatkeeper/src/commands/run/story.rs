//! Lines for the person at the terminal, on the standard error output.

use std::fmt::Display;

use seatkeeper_client::MaskedKey;

/// Prints lines, unless told to be quiet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Story {
    quiet: bool,
}

impl Story {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Prints one line.
    pub(super) fn tell(self, line: impl Display) {
        if !self.quiet {
            eprintln!("seatkeeper: {line}");
        }
    }
}

/// Returns a license key with all but its last four characters hidden; a key of eight or fewer is hidden whole.
pub(super) fn masked(key: &str) -> String {
    MaskedKey(key).to_string()
}
