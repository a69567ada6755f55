//! Lines for the person at the terminal, on the standard error output.

use std::fmt::Display;

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
