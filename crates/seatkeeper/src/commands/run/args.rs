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
    /// The unit that takes a seat: each run of a command, or the machine with all its runs
    #[arg(long, value_name = "UNIT", default_value = "command")]
    pub count_as: CountAs,
    /// The machine's name; by default the name of the host, and with --count-as machine the id of the
    /// operating system
    #[arg(long, value_name = "ID")]
    pub machine: Option<String>,
    /// The run's name on the machine; by default unique. Runs with equal names share a seat
    #[arg(long, value_name = "ID")]
    pub instance: Option<String>,
    /// The command's fate when the seat is lost
    #[arg(long, value_name = "POLICY", default_value = "stop")]
    pub on_lost: OnLost,
    /// The time to go on without a seat while the server is unreachable: that of the license, or 0
    #[arg(long, value_name = "TIME", default_value = "license")]
    pub grace: Grace,
    /// The time from TERM to KILL, and the time for left-over processes to keep the seat
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    pub stop_timeout: Duration,
    /// The fate of processes of the command's group that outlive the command by --stop-timeout
    #[arg(long, value_name = "POLICY", default_value = "leave")]
    pub on_exit: OnExit,
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
    /// Keep SEATKEEPER_TOKEN in the command's environment
    #[arg(long)]
    pub pass_token: bool,
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

/// The unit that takes a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CountAs {
    /// Each run takes a seat.
    Command,
    /// All runs on the machine share a seat.
    Machine,
}

/// The time that a command may go on after the deadline of its seat while the server is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Grace {
    /// The license's grace.
    License,
    /// No time.
    #[value(name = "0")]
    Zero,
}

/// A policy for left-over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExit {
    /// The processes go on without a seat.
    Leave,
    /// Kill the whole process group.
    KillGroup,
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
