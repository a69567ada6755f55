//! Messages to the user of the terminal, on stderr.

use std::fmt::Display;

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
    let count = key.chars().count();
    if count <= 8 {
        return "****".to_owned();
    }
    let tail: String = key.chars().skip(count - 4).collect();
    format!("****{tail}")
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn a_key_shows_its_end_alone() {
        assert_eq!(masked("CAD-2030-XYZW"), "****XYZW");
        assert_eq!(masked("CAD-2030"), "****");
        assert_eq!(masked(""), "****");
    }
}
