//! The signals that `run` forwards to its command.

use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use crate::signals::{Listener, number_of};

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

    /// Returns a signal that has arrived already.
    pub(super) async fn arrived(&mut self) -> Option<Signal> {
        // The runtime learns of a signal between two steps of its tasks: a look without a wait could miss the signal.
        timeout(Duration::ZERO, self.next()).await.ok()
    }

    /// Returns the number of the next signal that asks the process to end.
    pub(super) async fn next_end(&mut self) -> u8 {
        loop {
            let signal = self.next().await;
            if ends(signal) {
                return number_of(signal);
            }
        }
    }
}

/// Returns `true` for a signal that asks the command to end.
pub(super) fn ends(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}
