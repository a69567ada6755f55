//! One client in one round.

use std::sync::Arc;

use super::exchange::Exchange;
use super::script::{Script, Step};
use super::watch::Watch;
use crate::api::{self, Acquired, Beat, Released, SessionCalls};
use crate::call::Call;
use crate::{Asked, Error, Stopwatch};

/// What all clients of a license share.
pub(super) struct Scene {
    pub(super) exchange: Arc<Exchange>,
    pub(super) stopwatch: Stopwatch,
    pub(super) watch: Watch,
}

/// A machine, and its request for a seat.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) name: Arc<str>,
    pub(super) acquire: Call,
}

/// A machine that goes by a script.
pub(super) struct Client {
    pub(super) scene: Arc<Scene>,
    pub(super) machine: Machine,
    /// The session that it knows it holds.
    pub(super) held: Option<SessionCalls>,
}

impl Client {
    pub(super) fn new(scene: Arc<Scene>, machine: Machine) -> Self {
        Self { scene, machine, held: None }
    }

    /// Plays the script, and then gives back what it holds, unless it has crashed.
    pub(super) async fn play(mut self, mut script: Script) -> Result<(), Error> {
        while let Some(step) = script.next(self.held.is_some()) {
            match step {
                Step::Acquire => self.held = self.acquire().await?,
                Step::AcquireTwice => {
                    let (one, other) = tokio::join!(self.acquire(), self.acquire());
                    self.held = one?.or(other?);
                }
                Step::AcquireUnheard => self.acquire_unheard().await,
                Step::AcquireTorn { turns } => self.acquire_torn(turns).await,
                Step::Heartbeat => self.heartbeat().await,
                Step::Release => self.release().await,
                Step::ReleaseUnheard => self.release_unheard().await,
                Step::Crash => {
                    self.scene.watch.note(|statistics| statistics.crashed += 1);
                    return Ok(());
                }
            }
        }
        self.release().await;
        Ok(())
    }

    pub(super) async fn acquire(&self) -> Result<Option<SessionCalls>, Error> {
        let (scene, machine) = (&self.scene, &self.machine.name);
        let (answer, asked) = self.ask().await;
        match answer {
            Some(Acquired::Granted(grant)) => {
                scene.watch.granted(machine, &grant, asked);
                return SessionCalls::new(scene.exchange.target(), grant.session_id).map(Some);
            }
            Some(Acquired::Denied(denial)) => scene.watch.denied(machine, &denial, asked),
            Some(Acquired::Unexpected(what)) => {
                scene.watch.unexpected(what.status);
                scene.watch.abandoned(machine, asked.answered);
            }
            None => scene.watch.abandoned(machine, asked.answered),
        }
        Ok(None)
    }

    async fn acquire_unheard(&self) {
        let (watch, machine) = (&self.scene.watch, &self.machine.name);
        let (answer, asked) = self.ask().await;
        match answer {
            Some(Acquired::Granted(grant)) => watch.granted_unheard(machine, &grant, asked.answered),
            Some(Acquired::Denied(denial)) => watch.denied(machine, &denial, asked),
            Some(Acquired::Unexpected(_)) | None => watch.abandoned(machine, asked.answered),
        }
    }

    async fn acquire_torn(&self, turns: u32) {
        let (watch, machine) = (&self.scene.watch, &self.machine.name);
        watch.asking(machine);
        let mut line = self.scene.exchange.line().await;
        tokio::select! {
            biased;
            // An answer that was in time is not looked at.
            _ = api::acquire(&mut line.connection, &self.machine.acquire) => {}
            () = others_turns(turns) => {}
        }
        line.connection.close();
        self.scene.exchange.hang_up(line);
        watch.note(|statistics| statistics.torn += 1);
        watch.abandoned(machine, self.scene.stopwatch.now());
    }

    /// Sends an acquire; no answer has been counted already.
    async fn ask(&self) -> (Option<Acquired>, Asked) {
        let scene = &self.scene;
        scene.watch.asking(&self.machine.name);
        let mut line = scene.exchange.line().await;
        let sent = scene.stopwatch.now();
        let answer = api::acquire(&mut line.connection, &self.machine.acquire).await;
        let asked = Asked { sent, answered: scene.stopwatch.now() };
        scene.exchange.hang_up(line);
        let answer = answer.inspect_err(|failure| scene.watch.failed(failure)).ok();
        (answer, asked)
    }

    async fn heartbeat(&mut self) {
        let Some(calls) = self.held.take() else { return };
        let (scene, machine) = (&self.scene, &self.machine.name);
        scene.watch.asking(machine);
        let mut line = scene.exchange.line().await;
        let sent = scene.stopwatch.now();
        let answer = api::heartbeat(&mut line.connection, &calls).await;
        let asked = Asked { sent, answered: scene.stopwatch.now() };
        scene.exchange.hang_up(line);
        match answer {
            Ok(Beat::Renewed(renewal)) => {
                scene.watch.renewed(machine, &calls.session, renewal, asked);
                self.held = Some(calls);
            }
            Ok(Beat::Ended { .. } | Beat::Missing) => scene.watch.over(machine, &calls.session, asked),
            Ok(Beat::Unexpected(what)) => {
                scene.watch.unexpected(what.status);
                scene.watch.abandoned(machine, asked.answered);
            }
            Err(failure) => {
                scene.watch.failed(&failure);
                scene.watch.abandoned(machine, asked.answered);
            }
        }
    }

    pub(super) async fn release(&mut self) {
        let Some(calls) = self.held.take() else { return };
        let (scene, machine) = (&self.scene, &self.machine.name);
        let until = scene.watch.releasing(&calls.session);
        let mut line = scene.exchange.line().await;
        let sent = scene.stopwatch.now();
        let answer = api::release(&mut line.connection, &calls).await;
        let asked = Asked { sent, answered: scene.stopwatch.now() };
        scene.exchange.hang_up(line);
        match answer {
            Ok(Released::Now) => scene.watch.released(machine, asked.answered),
            Ok(Released::NotLive) => scene.watch.release_missed(machine, &calls.session, until, asked),
            Ok(Released::Unexpected(what)) => scene.watch.unexpected(what.status),
            Err(failure) => scene.watch.failed(&failure),
        }
    }

    async fn release_unheard(&mut self) {
        let Some(calls) = self.held.take() else { return };
        self.scene.watch.releasing(&calls.session);
        let mut line = self.scene.exchange.line().await;
        let answer = api::release(&mut line.connection, &calls).await;
        self.scene.exchange.hang_up(line);
        match answer {
            Ok(_) => self.scene.watch.note(|statistics| statistics.unheard += 1),
            Err(failure) => self.scene.watch.failed(&failure),
        }
    }
}

async fn others_turns(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}
