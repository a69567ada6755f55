//! Job control: `run` stops and continues together with its command, and the seats' heartbeats go on.

use std::fs::File;
use std::io;

use nix::unistd::{getppid, getsid};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use tokio::signal::unix::{self, SignalKind};

use super::group::{Group, reap_orphans};
use super::keeper::Keeper;
use super::seats::HeldSeat;
use crate::signals::Listener;

/// A listener for the signals of job control.
#[derive(Debug)]
pub(super) struct JobSignals {
    stop: Listener,
    read: Listener,
    write: Listener,
    go_on: unix::Signal,
    child: unix::Signal,
}

/// The stops and continuations of a command.
#[derive(Debug)]
pub(super) struct Job {
    group: Group,
    /// The signal that asked `run` to stop; `None` once the command has stopped.
    asked: Option<Signal>,
    /// The process with the heartbeats while `run` is stopped.
    keeper: Option<Keeper>,
}

impl JobSignals {
    /// Installs the handlers. From this call on, the signals do not stop the process.
    pub(super) fn listen() -> io::Result<Self> {
        let on = |signal: Signal| unix::signal(SignalKind::from_raw(signal.as_raw()));
        Ok(Self {
            stop: Listener::new(Signal::TSTP)?,
            read: Listener::new(Signal::TTIN)?,
            write: Listener::new(Signal::TTOU)?,
            go_on: on(Signal::CONT)?,
            child: on(Signal::CHILD)?,
        })
    }

    /// Returns the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = self.stop.recv() => Signal::TSTP,
            () = self.read.recv() => Signal::TTIN,
            () = self.write.recv() => Signal::TTOU,
            _ = self.go_on.recv() => Signal::CONT,
            _ = self.child.recv() => Signal::CHILD,
        }
    }
}

impl Job {
    pub(super) fn new(group: Group) -> Self {
        Self { group, asked: None, keeper: None }
    }

    /// Handles a signal of [`JobSignals`]. Returns an error if no process could take over the heartbeats. After a Ctrl-Z the
    /// command is then continued, because the shell is not back on the terminal before `run` stops. A command in the
    /// background that uses the terminal stays stopped: it would use the terminal again at once.
    pub(super) async fn handle(&mut self, signal: Signal, seats: &[HeldSeat]) -> io::Result<()> {
        if signal == Signal::CONT {
            self.asked = None;
            self.end_keeper(seats).await;
            self.group.send(Signal::CONT);
            return Ok(());
        }
        if signal == Signal::CHILD {
            self.reap_orphans();
        } else {
            self.asked = Some(signal);
            if signal == Signal::TSTP && matches!(self.group, Group::Own(_)) {
                self.group.send(Signal::TSTP);
            }
        }
        // A program may save the screen first, or ignore the signal: `run` stops only after the command.
        if let Some(asked) = self.asked
            && self.keeper.is_none()
            && has_stopped(self.group.leader())
        {
            self.asked = None;
            if is_job_of_a_shell() {
                let keeper = Keeper::start(seats).inspect_err(|_| {
                    if asked == Signal::TSTP {
                        self.group.continue_stopped();
                    }
                })?;
                self.keeper = Some(keeper);
                for held in seats {
                    // A client that is closed sends no heartbeats.
                    let _ = held.client.pause().await;
                }
                // The call returns when the shell has continued `run`. A handler for CONT would come too late: a command that
                // reads in the background stops at once, and the kernel drops a pending CONT for a signal to stop.
                let _ = kill_process(getpid(), Signal::STOP);
                self.end_keeper(seats).await;
            }
        }
        Ok(())
    }

    fn reap_orphans(&self) {
        let keeper = self.keeper.as_ref().and_then(Keeper::pid);
        let own: Vec<Pid> = [Some(self.group.leader()), keeper].into_iter().flatten().collect();
        reap_orphans(&own);
    }

    /// Takes the heartbeats back from the process with the heartbeats.
    pub(super) async fn end_keeper(&mut self, seats: &[HeldSeat]) {
        if let Some(keeper) = self.keeper.take() {
            seats.iter().for_each(|held| held.client.wake());
            keeper.end().await;
        }
    }
}

/// Returns `true` once for each stop of the process.
fn has_stopped(pid: Pid) -> bool {
    let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
    stopped.is_ok_and(|status| status.is_some())
}

/// Returns `true` if a shell waits for `run`, and continues a stopped `run`. Only a shell on a terminal does, and the
/// shell shares the session of `run`.
fn is_job_of_a_shell() -> bool {
    // In a container the leader of the session may be outside, and its id is then 0: `getsid` of `rustix` has no such id.
    let shares_session = getsid(Some(getppid())).is_ok_and(|session| getsid(None) == Ok(session));
    shares_session && File::open("/dev/tty").is_ok()
}
