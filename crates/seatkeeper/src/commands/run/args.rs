//! The arguments of `seatkeeper run`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use seatkeeper_client::{MaskedKey, Wait};

use crate::args::DataDirArgs;
use crate::duration;
use crate::settings::{VARIABLE_CA_FILE, VARIABLE_TOKEN, VARIABLE_URL};

const EXIT_CODES: &str = "\
Exit codes: the command's own; 128+N if signal N ended it; 2 wrong arguments; 69 server unreachable;
75 no seat within --wait; 76 the seat was lost and the command stopped; 77 refused; 126 the command
cannot be executed; 127 no such command. --report tells ours from the command's.";

/// `Debug` shows no token, and the end of each license key alone.
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// The key of the license; several keys take a seat of each
    #[arg(long = "license", value_name = "KEY", required = true)]
    pub licenses: Vec<String>,
    /// The longest wait for a free seat: 90s, 5m, forever, or 0
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = wait)]
    pub wait: Wait,
    /// The machine that takes the seat; by default each run is a separate machine, so no two runs share a
    /// seat
    #[arg(long, value_name = "ID")]
    pub machine: Option<String>,
    /// The command's fate when the seat is lost
    #[arg(long, value_name = "POLICY", default_value = "stop")]
    pub on_lost: OnLost,
    /// The time that a stopped command has before it is killed
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub stop_timeout: Duration,
    /// Write the outcome to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// The server to ask
    #[arg(long, value_name = "URL", env = VARIABLE_URL, default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// The trusted CA certificates of an https server, as PEM; by default those of the system
    #[arg(long, value_name = "FILE", env = VARIABLE_CA_FILE)]
    pub ca_file: Option<PathBuf>,
    /// A user's token; by default the key in the data directory signs a token
    #[arg(long, value_name = "JWT", env = VARIABLE_TOKEN, hide_env_values = true, conflicts_with = "token_file")]
    pub token: Option<String>,
    /// A file with the token, read again when the server rejects the token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Get a license token for each license from the server, with the license's key alone
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    pub license_token: bool,
    /// The tenant of a license token, and of a token signed by the key in the data directory
    #[arg(long, value_name = "TENANT", default_value = "default")]
    pub tenant: String,
    #[command(flatten)]
    pub data: DataDirArgs,
    /// The command and its arguments, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// A policy for a command that has lost its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// Stop the command.
    Stop,
    /// Report the loss, and let the command go on.
    Warn,
}

impl fmt::Debug for RunArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let licenses: Vec<MaskedKey<'_>> = self.licenses.iter().map(|key| MaskedKey(key)).collect();
        f.debug_struct("RunArgs")
            .field("licenses", &licenses)
            .field("server", &self.server)
            .field("program", &self.program())
            .finish_non_exhaustive()
    }
}

impl RunArgs {
    /// Returns the name of the command as typed.
    pub(super) fn program(&self) -> &OsStr {
        self.command.first().map(OsString::as_os_str).unwrap_or_default()
    }

    /// Returns the arguments of the command.
    pub(super) fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }
}

/// Reads `0`, `forever` or a duration.
fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "0" => Ok(Wait::No),
        "forever" => Ok(Wait::Forever),
        text => match duration::parse(text) {
            Ok(Duration::ZERO) => Ok(Wait::No),
            Ok(span) => Ok(Wait::For(span)),
            Err(error) => Err(format!("{error}; or 0 or forever")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_time_or_none_or_for_ever() {
        assert_eq!(wait("0"), Ok(Wait::No));
        assert_eq!(wait("0s"), Ok(Wait::No));
        assert_eq!(wait("forever"), Ok(Wait::Forever));
        assert_eq!(wait("5m"), Ok(Wait::For(Duration::from_secs(300))));
        assert!(wait("soon").is_err());
    }
}
