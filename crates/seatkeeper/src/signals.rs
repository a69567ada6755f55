//! Signals that ask this process to end.

use std::future::pending;
use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// The base of exit codes for signals: the signal's number is added.
pub(crate) const EXIT_SIGNAL: u8 = 128;

/// A listener for a signal. The listener of a signal that this process was started to ignore is `None`, and never hears the
/// signal: `nohup` ignores HUP, and a shell without job control ignores INT and QUIT in its background processes.
#[derive(Debug)]
pub(crate) struct Listener(Option<unix::Signal>);

impl Listener {
    /// Installs the handler of `signal`, unless the signal is ignored. A child process inherits an ignored signal.
    pub(crate) fn new(signal: Signal) -> io::Result<Self> {
        if ignores(signal) {
            return Ok(Self(None));
        }
        unix::signal(SignalKind::from_raw(signal.as_raw())).map(Some).map(Self)
    }

    /// Waits for the signal; for ever if the signal is ignored.
    pub(crate) async fn recv(&mut self) {
        let heard = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if heard.is_none() {
            pending().await
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

/// A listener for the signals that end a command: TERM, INT and HUP. The command cleans up before its end.
#[derive(Debug)]
pub(crate) struct EndSignals {
    terminate: Listener,
    interrupt: Listener,
    hangup: Listener,
}

impl EndSignals {
    /// Installs the handlers. From this call on, the signals do not end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: Listener::new(Signal::TERM)?,
            interrupt: Listener::new(Signal::INT)?,
            hangup: Listener::new(Signal::HUP)?,
        })
    }

    /// Waits for the next signal, and returns the number of the signal.
    pub(crate) async fn next(&mut self) -> u8 {
        let signal = tokio::select! {
            () = self.terminate.recv() => Signal::TERM,
            () = self.interrupt.recv() => Signal::INT,
            () = self.hangup.recv() => Signal::HUP,
        };
        number_of(signal)
    }
}

/// Returns the number of a signal.
pub(crate) fn number_of(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or_default()
}
