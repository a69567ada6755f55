//! The outcome of a run as JSON, for programs.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use seatkeeper_client::Loss;
use serde::Serialize;

use super::error::RunError;
use super::seats::HeldSeat;
use crate::signals::EXIT_SIGNAL;

/// The exit code of a run whose command was stopped after a lost seat.
const EXIT_LOST: u8 = 76;

/// The end of a command.
#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    pub ran: Duration,
    pub lost: Option<Loss>,
    pub stopped_by_loss: bool,
    pub left_overs: LeftOvers,
}

/// The fate of processes that outlived the command by the stop timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LeftOvers {
    /// No process outlived the command.
    #[default]
    None,
    /// The processes go on without a seat.
    Left,
    /// The processes were killed.
    Killed,
}

impl Ended {
    /// Returns the command's own code, 128 plus the number of its signal, or the code of a lost seat.
    pub(super) fn exit_code(&self) -> u8 {
        if self.stopped_by_loss {
            return EXIT_LOST;
        }
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(1),
            (None, signal) => signal
                .and_then(|signal| u8::try_from(signal).ok())
                .map_or(1, |signal| EXIT_SIGNAL.saturating_add(signal)),
        }
    }
}

/// The outcome as JSON.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    outcome: &'static str,
    exit_code: u8,
    signal: Option<i32>,
    session_ids: Vec<String>,
    waited_seconds: f64,
    ran_seconds: f64,
    lost: Option<ReportedLoss>,
    left_overs: LeftOvers,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReportedLoss {
    reason: String,
    by: Option<Box<str>>,
}

impl Report {
    /// Notes the seats of the run.
    pub(super) fn admit(&mut self, seats: &[HeldSeat]) {
        self.session_ids = seats.iter().filter_map(|held| held.seat.session_id()).collect();
    }

    /// Notes the time until all seats were taken, or until the run gave up.
    pub(super) fn wait(&mut self, waited: Duration) {
        self.waited_seconds = waited.as_secs_f64();
    }

    /// Notes the end of the command.
    pub(super) fn end(&mut self, ended: &Ended) {
        self.outcome = if ended.stopped_by_loss { "lost" } else { "exited" };
        if !ended.stopped_by_loss && ended.status.signal().is_some() {
            self.outcome = "signalled";
        }
        self.signal = ended.status.signal();
        self.ran_seconds = ended.ran.as_secs_f64();
        self.left_overs = ended.left_overs;
        let lost = ended.lost.as_ref();
        self.lost = lost
            .map(|Loss { reason, by, .. }| ReportedLoss { reason: reason.name().to_owned(), by: by.clone() });
    }

    /// Notes the exit code, and the error of a run without a command.
    pub(super) fn finish(&mut self, exit_code: u8, error: Option<&RunError>) {
        self.exit_code = exit_code;
        if let Some(error) = error {
            self.outcome = error.outcome();
            self.error = Some(crate::commands::sentence(error));
        }
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, serde_json::to_vec_pretty(self)?)
    }
}
