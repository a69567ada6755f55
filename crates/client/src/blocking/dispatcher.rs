//! Calls of the program's listeners: one thread of a client makes them, so a slow listener delays no heartbeat.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use seatkeeper_client_core::State;

use super::listener::{Function, Listener};
use crate::error::Error;

/// The thread of a client that calls listeners, from the first listener on. The thread ends after the last call, once the
/// dispatcher and every [`Outlet`] are dropped; or after [`Dispatcher::stop`].
#[derive(Debug, Default)]
pub(super) struct Dispatcher {
    caller: Mutex<Caller>,
}

#[derive(Debug, Default)]
enum Caller {
    /// There was no listener yet.
    #[default]
    Idle,
    Running(Running),
    Stopped,
}

/// The thread that calls.
#[derive(Debug)]
struct Running {
    due: Sender<Due>,
    is_stopped: Arc<AtomicBool>,
    /// Closed by the end of the thread.
    ended: Receiver<()>,
    thread: JoinHandle<()>,
}

/// A message to the thread.
#[derive(Debug)]
enum Due {
    /// One state waits for this listener.
    Call(Arc<Listener>),
    /// Wakes the thread after `is_stopped`.
    Stop,
}

/// The way of states to one listener.
#[derive(Debug)]
pub(super) struct Outlet {
    listener: Arc<Listener>,
    due: Sender<Due>,
}

impl Dispatcher {
    fn lock(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a function, and starts the thread if there is none. Fails with [`Error::Closed`] after the stop, and with
    /// [`Error::Thread`] if the thread cannot be started.
    pub(super) fn listen(&self, function: Function) -> Result<Outlet, Error> {
        let mut caller = self.lock();
        if matches!(*caller, Caller::Idle) {
            *caller = Caller::Running(Running::start()?);
        }
        let Caller::Running(Running { due, .. }) = &*caller else { return Err(Error::Closed) };
        Ok(Outlet { listener: Arc::new(Listener::new(function)), due: due.clone() })
    }

    /// Stops the thread before its next call, and waits for a call in progress for at most `timeout`.
    pub(super) fn stop(&self, timeout: Duration) {
        let mut caller = self.lock();
        let Caller::Running(running) = std::mem::replace(&mut *caller, Caller::Stopped) else { return };
        running.is_stopped.store(true, Ordering::Release);
        drop(caller);
        running.join(timeout);
    }
}

impl Running {
    fn start() -> Result<Self, Error> {
        let ((due, received), (ending, ended)) = (channel(), channel());
        let is_stopped = Arc::new(AtomicBool::new(false));
        let flag = is_stopped.clone();
        let builder = thread::Builder::new().name("seatkeeper-call".to_owned());
        let spawned = builder.spawn(move || {
            let _ending: Sender<()> = ending;
            run(&received, &flag);
        });
        Ok(Self { due, is_stopped, ended, thread: spawned.map_err(Error::Thread)? })
    }

    /// Wakes the stopped thread, and waits for its end for at most `timeout`.
    fn join(self, timeout: Duration) {
        // A thread that has ended needs no message.
        let _ = self.due.send(Due::Stop);
        // A listener that calls cannot wait for its own end.
        let is_caller = self.thread.thread().id() == thread::current().id();
        if !is_caller && self.ended.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected) {
            // The thread has closed the channel, and ends at once.
            let _ = self.thread.join();
        }
    }
}

impl Outlet {
    /// Tells the listener a state. Does not wait for the function.
    pub(super) fn tell(&self, state: State) {
        if self.listener.push(state) {
            // After a stop nobody is told.
            let _ = self.due.send(Due::Call(self.listener.clone()));
        }
    }

    /// Returns the listener, for its removal.
    pub(super) fn listener(&self) -> Arc<Listener> {
        self.listener.clone()
    }
}

fn run(due: &Receiver<Due>, is_stopped: &AtomicBool) {
    while let Ok(Due::Call(listener)) = due.recv()
        && !is_stopped.load(Ordering::Acquire)
    {
        listener.call();
    }
}

#[cfg(test)]
mod tests;
