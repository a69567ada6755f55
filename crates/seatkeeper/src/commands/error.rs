//! Errors of the commands, with their exit codes.

use std::io::{self, Write as _};
use std::process::ExitCode;

use seatkeeper_core::Region;
use seatkeeper_server::auth::MintError;
use seatkeeper_server::{AdoptError, StartError};

use super::demo::DemoError;
use super::run::RunError;
use crate::logging;
use crate::signals::EXIT_SIGNAL;
use crate::{admin, api_client, settings};

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The settings cannot be loaded.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The admin API cannot be used.
    #[error(transparent)]
    Admin(#[from] admin::Error),
    /// A call of the API failed.
    #[error(transparent)]
    Api(#[from] api_client::Error),
    /// Logging cannot be started with these settings.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// The server cannot start.
    #[error("the server cannot start")]
    Start(#[from] StartError),
    /// The async runtime cannot start.
    #[error("the process cannot start its runtime")]
    Runtime(#[source] io::Error),
    /// The server stopped without being asked to.
    #[error("the server stopped by itself; its log says why")]
    Stopped,
    /// Signal handlers cannot be installed.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// A signal asked the command to end.
    #[error("stopped by signal {signal}")]
    Interrupted {
        /// The number of the signal.
        signal: u8,
    },
    /// The ledger has no answer.
    #[error(transparent)]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The registry in PostgreSQL has no answer.
    #[error(transparent)]
    Registry(#[from] seatkeeper_registry::Error),
    /// The CA certificates for the server cannot be read.
    #[error("the file of --ca-file cannot be read")]
    CaFile(#[source] io::Error),
    /// The load could not be run.
    #[error(transparent)]
    Load(#[from] seatkeeper_load::Error),
    /// The command of `run` was not started, or was not awaited to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The demo broke off.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// A lost region was not adopted.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// A ledger was given for another region than its own.
    #[error("the ledger given for region {named} is region {recorded}'s")]
    OtherRegionsLedger {
        /// The region of the command line.
        named: Region,
        /// The region on record.
        recorded: Region,
    },
    /// Two ledgers were given for one region.
    #[error("a region is named twice: give one ledger for each region")]
    RegionNamedTwice,
    /// No token can be signed.
    #[error("no token could be signed; a first `seatkeeper serve` makes the key in its data directory")]
    Mint(#[from] MintError),
    /// The settings cannot be written as TOML.
    #[error("the settings cannot be written as TOML")]
    Toml(#[from] toml::ser::Error),
    /// The result cannot be printed.
    #[error("cannot write to the standard output")]
    Output(#[from] io::Error),
}

/// The exit code of a failure, or of a check with a finding.
pub(crate) const EXIT_FAILED: u8 = 1;
/// The exit code of wrong arguments or settings. The argument parser exits with the same code.
const EXIT_USAGE: u8 = 2;

/// Returns an error and its causes in one line.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Error {
    /// Prints the error in one sentence on stderr, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // A closed stderr must not change the exit code.
        let _ = writeln!(io::stderr().lock(), "seatkeeper: {}", sentence(self));
        ExitCode::from(self.exit_code())
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_)
            | Self::Logging(_)
            | Self::Admin(admin::Error::Settings(_))
            | Self::OtherRegionsLedger { .. }
            | Self::RegionNamedTwice => EXIT_USAGE,
            Self::Run(error) => error.exit_code(),
            Self::Interrupted { signal } => EXIT_SIGNAL.saturating_add(*signal),
            Self::Admin(admin::Error::NoToken(_) | admin::Error::Client(_))
            | Self::Api(_)
            | Self::Start(_)
            | Self::Runtime(_)
            | Self::Stopped
            | Self::Signals(_)
            | Self::CaFile(_)
            | Self::Ledger(_)
            | Self::Registry(_)
            | Self::Load(_)
            | Self::Demo(_)
            | Self::Adopt(_)
            | Self::Mint(_)
            | Self::Toml(_)
            | Self::Output(_) => EXIT_FAILED,
        }
    }
}
