//! Errors of `seatkeeper run`, each with its exit code.

use std::io;
use std::path::PathBuf;

use seatkeeper_client::{Failure, MachineIdError};

use crate::settings;
use crate::signals::EXIT_SIGNAL;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_UNREACHABLE: u8 = 69;
const EXIT_NO_SEAT: u8 = 75;
const EXIT_REFUSED: u8 = 77;
const EXIT_NOT_EXECUTABLE: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;

/// The reason why the command was not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The command does not exist.
    #[error("no such command: {name}")]
    NotFound {
        /// The command as typed.
        name: String,
    },
    /// The file is not executable.
    #[error("{name} cannot be executed")]
    NotExecutable {
        /// The command as typed.
        name: String,
    },
    /// The command could not be started, or `exec` failed. The seats that were taken are given back.
    #[error("the command cannot be started")]
    Start(#[source] io::Error),
    /// Signal handlers cannot be installed.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// The certificates cannot be read.
    #[error("{} cannot be read", path.display())]
    CaFile {
        /// The certificate file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// `--instance` names a run, but `--count-as machine` tells no runs apart.
    #[error("--instance cannot be used with --count-as machine: all runs on the machine share the seat")]
    InstanceOfMachine,
    /// The machine has no id for `--count-as machine`.
    #[error("--count-as machine needs an id of this machine: name the machine with --machine")]
    NoMachineId(#[source] MachineIdError),
    /// The runs that share a seat cannot be counted.
    #[error("the runs that share the seat cannot be counted: set XDG_STATE_HOME to a writable folder")]
    Share(#[source] io::Error),
    /// The settings cannot be loaded, so no key can sign a token.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// No seat was granted.
    #[error("no seat of {license}")]
    NoSeat {
        /// The license's key, masked.
        license: String,
        /// The reason.
        source: seatkeeper_client::Error,
    },
    /// The client cannot be made.
    #[error("no client of the server can be made")]
    Client(#[source] seatkeeper_client::Error),
    /// A signal came while waiting for a seat.
    #[error("stopped while waiting for a seat")]
    Interrupted {
        /// The number of the signal.
        signal: u8,
    },
    /// The file of the report cannot be opened.
    #[error("the report cannot be written, so no seat was taken")]
    ReportFile(#[source] io::Error),
    /// The report cannot be written.
    #[error("the report cannot be written")]
    Report(#[source] io::Error),
}

impl RunError {
    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => EXIT_NOT_FOUND,
            Self::NotExecutable { .. } | Self::Start(_) => EXIT_NOT_EXECUTABLE,
            Self::Settings(_)
            | Self::Client(_)
            | Self::CaFile { .. }
            | Self::InstanceOfMachine
            | Self::ReportFile(_)
            | Self::NoMachineId(_)
            | Self::Share(_) => EXIT_USAGE,
            Self::Interrupted { signal } => EXIT_SIGNAL.saturating_add(*signal),
            Self::NoSeat { source, .. } => no_seat(source),
            Self::Signals(_) | Self::Report(_) => EXIT_FAILED,
        }
    }

    /// Returns the name of the outcome in a report.
    pub(super) fn outcome(&self) -> &'static str {
        match self.exit_code() {
            EXIT_NOT_FOUND => "not-found",
            EXIT_NOT_EXECUTABLE => "not-executable",
            EXIT_USAGE => "misuse",
            EXIT_UNREACHABLE => "unreachable",
            EXIT_NO_SEAT => "no-seat",
            EXIT_REFUSED => "refused",
            EXIT_FAILED => "failed",
            _ => "interrupted",
        }
    }
}

fn no_seat(error: &seatkeeper_client::Error) -> u8 {
    match (error, error.code()) {
        (_, "license-full") => EXIT_NO_SEAT,
        (seatkeeper_client::Error::Offline { failure: Failure::NoToken, .. }, _) => EXIT_REFUSED,
        (seatkeeper_client::Error::Offline { .. }, _) => EXIT_UNREACHABLE,
        _ => EXIT_REFUSED,
    }
}
