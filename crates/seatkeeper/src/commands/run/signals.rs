//! The signals that `run` forwards to its command.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// A listener for the forwarded signals. A signal that this process was started to ignore is `None`: `nohup` ignores HUP,
/// and a shell without job control ignores INT and QUIT in its background processes.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: Option<unix::Signal>,
    hangup: Option<unix::Signal>,
    quit: Option<unix::Signal>,
    user1: unix::Signal,
    user2: unix::Signal,
}

impl Signals {
    /// Installs the handlers. From this call on, the signals do not end the process. The command inherits an ignored signal.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unless_ignored(Signal::INT)?,
            hangup: unless_ignored(Signal::HUP)?,
            quit: unless_ignored(Signal::QUIT)?,
            user1: unix::signal(SignalKind::user_defined1())?,
            user2: unix::signal(SignalKind::user_defined2())?,
        })
    }

    /// Returns the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            Some(()) = received(&mut self.interrupt) => Signal::INT,
            Some(()) = received(&mut self.hangup) => Signal::HUP,
            Some(()) = received(&mut self.quit) => Signal::QUIT,
            _ = self.user1.recv() => Signal::USR1,
            _ = self.user2.recv() => Signal::USR2,
        }
    }

    /// Returns the number of the next signal that asks the process to end.
    pub(super) async fn next_end(&mut self) -> u8 {
        loop {
            let signal = self.next().await;
            if ends(signal) {
                return u8::try_from(signal.as_raw()).unwrap_or_default();
            }
        }
    }
}

/// Installs the handler of `signal`. Returns `None` for an ignored signal.
fn unless_ignored(signal: Signal) -> io::Result<Option<unix::Signal>> {
    if ignores(signal) {
        return Ok(None);
    }
    unix::signal(SignalKind::from_raw(signal.as_raw())).map(Some)
}

async fn received(signal: &mut Option<unix::Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// Returns `true` if this process was started with the signal ignored. The mask of ignored signals has the lowest bit for
/// signal 1. Systems without `/proc` tell no mask.
fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal.as_raw() - 1) & 1 == 1
}

/// Returns `true` for a signal that asks the command to end.
pub(super) fn ends(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}
