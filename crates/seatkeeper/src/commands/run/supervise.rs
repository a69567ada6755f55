//! Supervises the command: forwards signals, and stops the command when a seat is lost.

use std::future::pending;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_client::{Loss, State};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::args::{OnLost, RunArgs};
use super::child;
use super::error::RunError;
use super::group::{Group, adopt_orphans};
use super::report::Ended;
use super::seats::HeldSeat;
use super::signals::{Signals, ends};
use super::story::{Story, masked};

/// The interval between two looks for processes left by the command.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the command, and returns when its process group is empty.
pub(super) async fn run(
    program: &Path,
    args: &RunArgs,
    seats: &mut [HeldSeat],
    signals: &mut Signals,
    story: Story,
) -> Result<Ended, RunError> {
    let began = Instant::now();
    adopt_orphans();
    let mut losses = watch(seats);
    let (mut leader, group) = child::start(program, args, seats).map_err(RunError::Start)?;
    let mut watched = Watched { args, group, story, lost: None, kill_at: None, stopped: false };
    let status = watched.until_the_leader_ends(&mut leader, signals, &mut losses).await?;
    watched.until_the_group_is_empty(signals).await;
    let Watched { lost, stopped, .. } = watched;
    let stopped_by_loss = stopped && lost.is_some();
    Ok(Ended { status, ran: began.elapsed(), lost, stopped_by_loss })
}

/// Returns a channel with the losses of all seats.
fn watch(seats: &[HeldSeat]) -> mpsc::UnboundedReceiver<(String, Loss)> {
    let (losses, told) = mpsc::unbounded_channel();
    for held in seats {
        let (mut states, license, losses) = (held.seat.watch(), held.license.clone(), losses.clone());
        tokio::spawn(async move {
            let lost = states.wait_for(|state| matches!(state, State::Lost(_))).await;
            if let Ok(State::Lost(loss)) = lost.map(|state| state.clone()) {
                // The receiver may be gone: the command may have ended first.
                let _ = losses.send((license, loss));
            }
        });
    }
    told
}

/// A command under supervision.
struct Watched<'a> {
    args: &'a RunArgs,
    group: Group,
    story: Story,
    lost: Option<Loss>,
    /// The time at which a command asked to stop is killed.
    kill_at: Option<tokio::time::Instant>,
    /// A lost seat stopped the command.
    stopped: bool,
}

impl Watched<'_> {
    async fn until_the_leader_ends(
        &mut self,
        leader: &mut Child,
        signals: &mut Signals,
        losses: &mut mpsc::UnboundedReceiver<(String, Loss)>,
    ) -> Result<ExitStatus, RunError> {
        loop {
            tokio::select! {
                status = leader.wait() => return status.map_err(RunError::Start),
                signal = signals.next() => self.forward(signal),
                Some((license, loss)) = losses.recv() => self.lose(&license, loss),
                () = killing(self.kill_at) => self.kill(),
            }
        }
    }

    /// Waits for processes left by the command, which use the seat as well.
    async fn until_the_group_is_empty(&mut self, signals: &mut Signals) {
        let give_up = tokio::time::Instant::now() + self.args.stop_timeout;
        if self.kill_at.is_some() {
            // TERM, because a background process of a shell ignores INT and QUIT.
            self.group.send(Signal::TERM);
        }
        while self.group.has_left_overs() {
            tokio::select! {
                signal = signals.next() => self.forward(signal),
                () = killing(self.kill_at) => self.kill(),
                () = tokio::time::sleep_until(give_up), if self.kill_at.is_none() => {
                    self.story.tell("processes of the command are left; they go on without a seat");
                    return;
                }
                () = sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    fn forward(&mut self, signal: Signal) {
        self.group.forward(signal);
        if ends(signal) {
            self.start_to_wait();
        }
    }

    fn lose(&mut self, license: &str, loss: Loss) {
        let (license, reason) = (masked(license), loss.reason.name().to_owned());
        self.lost = Some(loss);
        match self.args.on_lost {
            OnLost::Warn => {
                self.story
                    .tell(format_args!("the seat of {license} is lost ({reason}); the command goes on"));
            }
            OnLost::Stop => {
                self.story
                    .tell(format_args!("the seat of {license} is lost ({reason}); stopping the command"));
                self.stopped = true;
                self.group.send(Signal::TERM);
                // A suspended process handles TERM only after CONT.
                self.group.send(Signal::CONT);
                self.start_to_wait();
            }
        }
    }

    fn start_to_wait(&mut self) {
        self.kill_at.get_or_insert(tokio::time::Instant::now() + self.args.stop_timeout);
    }

    fn kill(&mut self) {
        self.story.tell("the command has not stopped in time; killing it");
        self.group.send(Signal::KILL);
        self.kill_at = Some(tokio::time::Instant::now() + self.args.stop_timeout.max(Duration::from_secs(1)));
    }
}

async fn killing(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
