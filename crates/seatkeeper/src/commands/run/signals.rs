//! The signals that `run` forwards to its command.

use std::future::pending;
use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// A listener for the forwarded signals.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Listener,
    interrupt: Listener,
    hangup: Listener,
    quit: Listener,
    user1: Listener,
    user2: Listener,
}

/// A listener for a signal. The listener of a signal that this process was started to ignore is `None`, and never hears the
/// signal: `nohup` ignores HUP, and a shell without job control ignores INT and QUIT in its background processes.
#[derive(Debug)]
pub(super) struct Listener(Option<unix::Signal>);

impl Listener {
    /// Installs the handler of `signal`, unless the signal is ignored. The command inherits an ignored signal.
    pub(super) fn new(signal: Signal) -> io::Result<Self> {
        if ignores(signal) {
            return Ok(Self(None));
        }
        unix::signal(SignalKind::from_raw(signal.as_raw())).map(Some).map(Self)
    }

    /// Waits for the signal; for ever if the signal is ignored.
    pub(super) async fn recv(&mut self) {
        let heard = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if heard.is_none() {
            pending().await
        }
    }
}

impl Signals {
    /// Installs the handlers. From this call on, the signals do not end the process.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: Listener::new(Signal::TERM)?,
            interrupt: Listener::new(Signal::INT)?,
            hangup: Listener::new(Signal::HUP)?,
            quit: Listener::new(Signal::QUIT)?,
            user1: Listener::new(Signal::USR1)?,
            user2: Listener::new(Signal::USR2)?,
        })
    }

    /// Returns the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = self.terminate.recv() => Signal::TERM,
            () = self.interrupt.recv() => Signal::INT,
            () = self.hangup.recv() => Signal::HUP,
            () = self.quit.recv() => Signal::QUIT,
            () = self.user1.recv() => Signal::USR1,
            () = self.user2.recv() => Signal::USR2,
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
