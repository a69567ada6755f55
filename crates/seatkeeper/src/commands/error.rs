use std::io;
use std::process::ExitCode;

use seatkeeper_server::StartError;
use seatkeeper_server::auth::MintError;

use super::demo::DemoError;
use super::run::RunError;
use crate::logging;
use crate::{admin, api_client, settings};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No settings.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// No way to the admin API.
    #[error(transparent)]
    Admin(#[from] admin::Error),
    /// A call of the API failed.
    #[error(transparent)]
    Api(#[from] api_client::Error),
    /// Nothing can be logged as the settings say.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// The server does not start.
    #[error("the server cannot start")]
    Start(#[from] StartError),
    /// No runtime.
    #[error("the process cannot start its runtime")]
    Runtime(#[source] io::Error),
    /// The server stopped, and nobody had asked it to.
    #[error("the server stopped by itself; its log says why")]
    Stopped,
    /// The signals that stop a server cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// The ledger has no answer.
    #[error(transparent)]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The registry in PostgreSQL has no answer.
    #[error(transparent)]
    Registry(#[from] seatkeeper_registry::Error),
    /// The certificates that vouch for the server cannot be read.
    #[error("the file of --ca-file cannot be read")]
    CaFile(#[source] io::Error),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] seatkeeper_load::Error),
    /// The command was not run, or not to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The demonstration has no good end.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// No token.
    #[error("no token could be signed; a first `seatkeeper serve` makes the key in its data directory")]
    Mint(#[from] MintError),
    /// The settings cannot be written as TOML.
    #[error("the settings cannot be written as TOML")]
    Toml(#[from] toml::ser::Error),
    /// The result cannot be printed.
    #[error("cannot write to the standard output")]
    Output(#[from] io::Error),
}

/// It failed, or a check found something.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Wrong arguments or settings; also what the argument parser exits with.
const EXIT_USAGE: u8 = 2;

/// An error with all its causes, in one line.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Error {
    /// Says it on the standard error output in one sentence, and how the process exits.
    pub(crate) fn report(&self) -> ExitCode {
        if self.is_closed_pipe() {
            // Whoever read the output has seen enough: `seatkeeper license list | head -1`.
            return ExitCode::SUCCESS;
        }
        eprintln!("seatkeeper: {}", sentence(self));
        ExitCode::from(self.exit_code())
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Logging(_) | Self::Admin(admin::Error::Settings(_)) => EXIT_USAGE,
            Self::Run(error) => error.exit_code(),
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
            | Self::Mint(_)
            | Self::Toml(_)
            | Self::Output(_) => EXIT_FAILED,
        }
    }
}
