//! The signals that `run` forwards to its command.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// A listener for the forwarded signals.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    /// `None` under `nohup`, which makes the kernel ignore the signal.
    hangup: Option<unix::Signal>,
    quit: unix::Signal,
    user1: unix::Signal,
    user2: unix::Signal,
}

impl Signals {
    /// Installs the handlers. From this call on, the signals do not end the process.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hangup: if ignores(Signal::HUP) { None } else { Some(unix::signal(SignalKind::hangup())?) },
            quit: unix::signal(SignalKind::quit())?,
            user1: unix::signal(SignalKind::user_defined1())?,
            user2: unix::signal(SignalKind::user_defined2())?,
        })
    }

    /// Returns the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            Some(()) = received(&mut self.hangup) => Signal::HUP,
            _ = self.quit.recv() => Signal::QUIT,
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
