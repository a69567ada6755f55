//! Supervises the command: forwards signals, and stops the command when a seat is lost.

use std::future::pending;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_client::{Loss, LossReason, State};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::args::{Grace, OnExit, OnLost, RunArgs};
use super::changes::{self, Change};
use super::child;
use super::error::RunError;
use super::group::{Group, adopt_orphans};
use super::job::{Job, JobSignals};
use super::report::{Ended, LeftOvers};
use super::seats::HeldSeat;
use super::signals::{Signals, ends};
use super::story::{Story, masked};

/// The interval between two looks for processes left by the command.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The time of a run to acquire a shared seat again after another run has released the seat.
const REGAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the command, and returns when its process group is empty.
pub(super) async fn run(
    program: &Path,
    args: &RunArgs,
    seats: &[HeldSeat],
    signals: &mut Signals,
    story: &Story,
) -> Result<Ended, RunError> {
    let began = Instant::now();
    adopt_orphans();
    let mut changes = changes::watch(seats);
    let mut job_signals = JobSignals::listen().map_err(RunError::Signals)?;
    let (mut leader, group, failure) = child::start(program, args, seats).map_err(RunError::Start)?;
    let mut watched = Watched::new(args, group, seats, story);
    let mut job = Job::new(group);
    while let Some(signal) = signals.arrived().await {
        watched.forward_early(signal);
    }
    let status = loop {
        tokio::select! {
            status = leader.wait() => break status.map_err(RunError::Start)?,
            signal = signals.next() => watched.forward(signal),
            signal = job_signals.next() => watched.stop_or_go_on(&mut job, signal).await,
            Some(change) = changes.recv() => watched.change(change),
            () = reached(watched.regain_until()) => watched.give_up_regaining(),
            () = reached(watched.kill_at) => watched.kill_command(),
        }
    };
    // A seat that is lost after the end of the command has not stopped the command.
    let stopped_by_loss = watched.stopped;
    job.end_keeper(seats).await;
    if let Some(reason) = failure.reason() {
        return Err(RunError::Start(reason));
    }
    let left_overs = watched.until_the_group_is_empty(signals, &mut changes).await;
    Ok(Ended { status, ran: began.elapsed(), lost: watched.lost, stopped_by_loss, left_overs })
}

/// A command under supervision.
struct Watched<'a> {
    args: &'a RunArgs,
    group: Group,
    seats: &'a [HeldSeat],
    story: &'a Story,
    /// The standing of each seat, as the user was told.
    told: Vec<Standing>,
    lost: Option<Loss>,
    /// The time at which a command asked to stop is killed.
    kill_at: Option<tokio::time::Instant>,
    /// A lost seat made `run` stop the command, or the processes left by the command. Implies a loss in `lost`.
    stopped: bool,
}

/// The standing of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Held,
    /// The server does not answer, or has ended the session: the seat is not confirmed.
    Unconfirmed,
    /// Another run has released the shared seat, and the acquire has until then.
    Regaining {
        until: tokio::time::Instant,
    },
    Lost,
}

impl<'a> Watched<'a> {
    fn new(args: &'a RunArgs, group: Group, seats: &'a [HeldSeat], story: &'a Story) -> Self {
        let told = vec![Standing::Held; seats.len()];
        Self { args, group, seats, story, told, lost: None, kill_at: None, stopped: false }
    }

    /// Waits for processes left by the command, which use the seat as well.
    async fn until_the_group_is_empty(
        &mut self,
        signals: &mut Signals,
        changes: &mut mpsc::UnboundedReceiver<Change>,
    ) -> LeftOvers {
        let give_up = tokio::time::Instant::now() + self.args.stop_timeout;
        let mut left_overs = self.group.left_overs();
        if self.kill_at.is_some() && left_overs.exist() {
            // TERM, because a background process of a shell ignores INT and QUIT.
            self.group.send(Signal::TERM);
        }
        let mut fate = LeftOvers::None;
        while left_overs.exist() {
            tokio::select! {
                signal = signals.next() => self.forward(signal),
                Some(change) = changes.recv() => self.change(change),
                () = reached(self.regain_until()) => self.give_up_regaining(),
                () = reached(self.kill_at) => {
                    if !self.kill() {
                        return self.leave_unkillable();
                    }
                }
                () = tokio::time::sleep_until(give_up), if self.kill_at.is_none() => {
                    match self.args.on_exit {
                        OnExit::Leave => {
                            self.story.tell("processes of the command are left; they go on without a seat");
                            return LeftOvers::Left;
                        }
                        OnExit::KillGroup => {
                            fate = LeftOvers::Killed;
                            self.story.tell("processes of the command are left; killing them");
                            if !self.kill_group() {
                                return self.leave_unkillable();
                            }
                        }
                    }
                }
                () = sleep(LOOK_INTERVAL) => {}
            }
        }
        fate
    }

    /// Forwards a signal from before the start of the command: the terminal has not sent the signal to the command.
    fn forward_early(&mut self, signal: Signal) {
        if self.group.hears_from_terminal(signal) {
            self.group.send(signal);
        } else {
            self.forward(signal);
        }
    }

    fn forward(&mut self, signal: Signal) {
        if self.group.hears_from_terminal(signal) {
            // The command decides: an interactive program goes on after Ctrl-C.
            return;
        }
        self.group.send(signal);
        if ends(signal) {
            self.start_to_wait();
        }
    }

    async fn stop_or_go_on(&mut self, job: &mut Job, signal: Signal) {
        if let Err(error) = job.handle(signal, self.seats).await {
            self.story.tell(format_args!(
                "no process can keep the seat of a stopped command, so `run` goes on: {error}"
            ));
        }
    }

    /// Tells a change of a seat, and stops the command after a loss.
    fn change(&mut self, (place, state): Change) {
        let (Some(held), Some(&told)) = (self.seats.get(place), self.told.get(place)) else { return };
        if self.stopped || told == Standing::Lost && !matches!(state, State::Active { .. }) {
            return;
        }
        let (license, left) = (masked(&held.license), held.seat.remaining().as_secs());
        let standing = match state {
            State::Lost(loss)
                if !matches!(told, Standing::Regaining { .. }) && is_released_by_another_run(held, &loss) =>
            {
                self.story.tell(format_args!(
                    "another run has released the seat of {license}; asking for the seat again"
                ));
                held.seat.acquire_again();
                Standing::Regaining { until: tokio::time::Instant::now() + REGAIN_TIMEOUT }
            }
            State::Refused(_) if matches!(told, Standing::Regaining { .. }) => {
                self.lose(&license, released());
                Standing::Lost
            }
            State::Lost(loss) => {
                self.lose(&license, loss);
                Standing::Lost
            }
            State::Grace { .. } if self.args.grace == Grace::Zero => {
                self.lose(
                    &license,
                    Loss { reason: LossReason::Deadline, by: None, retry: true, request_id: None },
                );
                Standing::Lost
            }
            State::Grace { .. } => {
                self.story.tell(format_args!(
                    "the server does not answer; the license of {license} lets the command go on for {left} s"
                ));
                Standing::Unconfirmed
            }
            State::Offline { .. } if left == 0 => {
                self.story.tell(format_args!("the seat of {license} is not confirmed; asking the server"));
                Standing::Unconfirmed
            }
            State::Offline { .. } => {
                self.story.tell(format_args!(
                    "the server does not answer; the seat of {license} is kept for {left} s"
                ));
                Standing::Unconfirmed
            }
            State::Reacquiring => {
                self.story.tell(format_args!("the session of {license} is over; asking for the seat again"));
                Standing::Unconfirmed
            }
            State::Active { .. } => {
                if told != Standing::Held {
                    self.story.tell(format_args!("the seat of {license} is held again"));
                }
                Standing::Held
            }
            State::Acquiring | State::Refused(_) | State::Released => told,
        };
        if let Some(told) = self.told.get_mut(place) {
            *told = standing;
        }
    }

    /// Returns the end of the earliest acquire of a shared seat.
    fn regain_until(&self) -> Option<tokio::time::Instant> {
        let ends = self.told.iter().filter_map(|told| match told {
            Standing::Regaining { until } => Some(*until),
            Standing::Held | Standing::Unconfirmed | Standing::Lost => None,
        });
        ends.min()
    }

    /// Loses the shared seats that were not acquired again in time.
    fn give_up_regaining(&mut self) {
        let now = tokio::time::Instant::now();
        for (place, held) in self.seats.iter().enumerate() {
            if let Some(told) = self.told.get_mut(place)
                && matches!(told, Standing::Regaining { until } if *until <= now)
            {
                *told = Standing::Lost;
                self.lose(&masked(&held.license), released());
            }
        }
    }

    fn lose(&mut self, license: &str, loss: Loss) {
        let reason = loss.reason.name().to_owned();
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
                self.start_to_wait();
            }
        }
    }

    /// Starts the time of the command to end after a signal.
    fn start_to_wait(&mut self) {
        // A stopped process handles the signal only after CONT.
        self.group.send(Signal::CONT);
        self.kill_at.get_or_insert(tokio::time::Instant::now() + self.args.stop_timeout);
    }

    /// Kills a command that runs still. The seat of a command that may not be killed is in use, and is kept.
    fn kill_command(&mut self) {
        if !self.kill() {
            self.story.tell("the command runs as another user, and cannot be killed; waiting for its end");
        }
    }

    /// Kills the group. Returns `false` if no process may be killed.
    fn kill(&mut self) -> bool {
        self.story.tell("the command has not stopped in time; killing it");
        self.kill_group()
    }

    /// Kills the group, and sets the time of the next try. Returns `false`, without a next try, if no process may be killed.
    fn kill_group(&mut self) -> bool {
        let may_kill = self.group.send(Signal::KILL);
        let retry_after = self.args.stop_timeout.max(Duration::from_secs(1));
        self.kill_at = may_kill.then(|| tokio::time::Instant::now() + retry_after);
        may_kill
    }

    /// Tells of left-over processes that may not be killed.
    fn leave_unkillable(&self) -> LeftOvers {
        self.story.tell("processes of another user cannot be killed; they go on without a seat");
        LeftOvers::Left
    }
}

/// Returns true if another run has ended the session of a shared seat. The runs of another user of the operating system are
/// not counted, and their last run releases the seat.
fn is_released_by_another_run(held: &HeldSeat, loss: &Loss) -> bool {
    held.holder.is_shared && loss.reason == LossReason::Released
}

/// Returns the loss of a seat that another run has released.
fn released() -> Loss {
    Loss { reason: LossReason::Released, by: None, retry: false, request_id: None }
}

/// Waits until `at`; for ever without a time.
async fn reached(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
