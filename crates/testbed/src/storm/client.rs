//! A client in a round: carries out its script, and reports every request to the watch.

use std::sync::Arc;

use seatkeeper_load::api::{self, Acquired, HeartbeatReply, Naming, Released, SessionCalls};
use seatkeeper_load::{Call, Error, RequestSpan, Stopwatch};

use super::Door;
use super::exchange::Exchange;
use super::script::{Script, Step};
use super::watch::Watch;

/// The state shared by all clients of a pool.
pub(super) struct Scene {
    pub(super) exchange: Arc<Exchange>,
    pub(super) door: Door,
    pub(super) stopwatch: Stopwatch,
    pub(super) watch: Watch,
}

/// A machine or device, with its prepared claim.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) name: Arc<str>,
    pub(super) claim: Call,
}

/// A machine that follows a script.
pub(super) struct Client {
    pub(super) scene: Arc<Scene>,
    pub(super) machine: Machine,
    /// The session known to be held.
    pub(super) held: Option<SessionCalls>,
}

impl Client {
    pub(super) fn new(scene: Arc<Scene>, machine: Machine) -> Self {
        Self { scene, machine, held: None }
    }

    /// Plays the script, and then releases the held session, unless the client has crashed.
    pub(super) async fn play(mut self, mut script: Script) -> Result<(), Error> {
        while let Some(step) = script.next(self.held.is_some()) {
            match step {
                Step::Acquire => self.held = self.acquire(Naming::Nothing).await?,
                Step::AcquireTwice => self.held = self.acquire_twice(Naming::Nothing).await?,
                Step::RefreshTwice => {
                    let own = self.held.take().map(|calls| calls.session);
                    self.held =
                        self.acquire_twice(own.as_deref().map_or(Naming::Nothing, Naming::Own)).await?;
                }
                Step::TakeAnothers => {
                    let anothers = self.scene.watch.anothers(&self.machine.name);
                    let naming = anothers.as_ref().map_or(Naming::Nothing, Naming::InPlaceOf);
                    self.held = self.acquire(naming).await?;
                }
                Step::AcquireUnheard => self.acquire_unheard().await,
                Step::AcquireTorn { turns } => self.acquire_torn(turns).await,
                Step::Heartbeat => self.heartbeat().await,
                Step::Release => self.release().await,
                Step::ReleaseUnheard => self.release_unheard().await,
                Step::EndOthers => self.end_others().await?,
                Step::Crash => {
                    self.scene.watch.note(|statistics| statistics.crashed += 1);
                    return Ok(());
                }
            }
        }
        self.release().await;
        Ok(())
    }

    pub(super) async fn acquire(&self, naming: Naming<'_>) -> Result<Option<SessionCalls>, Error> {
        let (scene, machine) = (&self.scene, &self.machine.name);
        let (answer, asked) = self.ask(&self.claim(naming)?).await;
        match answer {
            Some(Acquired::Granted(grant)) => {
                scene.watch.granted(machine, &grant, naming.replaced(), asked);
                return scene.door.session(scene.exchange.target(), grant.session_id).map(Some);
            }
            Some(Acquired::Denied(denial)) => scene.watch.denied(machine, &denial, asked),
            Some(Acquired::Unexpected(what)) => {
                scene.watch.unexpected(what.status);
                scene.watch.abandoned(machine, asked);
            }
            None => scene.watch.abandoned(machine, asked),
        }
        Ok(None)
    }

    async fn acquire_twice(&self, naming: Naming<'_>) -> Result<Option<SessionCalls>, Error> {
        let (one, other) = tokio::join!(self.acquire(naming), self.acquire(naming));
        Ok(one?.or(other?))
    }

    fn claim(&self, naming: Naming<'_>) -> Result<Call, Error> {
        match naming {
            Naming::Nothing => Ok(self.machine.claim.clone()),
            Naming::Own(_) | Naming::InPlaceOf(_) => {
                self.scene.door.claim(self.scene.exchange.target(), &self.machine.name, naming)
            }
        }
    }

    async fn acquire_unheard(&self) {
        let (watch, machine) = (&self.scene.watch, &self.machine.name);
        let (answer, asked) = self.ask(&self.machine.claim).await;
        match answer {
            Some(Acquired::Granted(grant)) => watch.granted_unheard(machine, &grant, asked),
            Some(Acquired::Denied(denial)) => watch.denied(machine, &denial, asked),
            Some(Acquired::Unexpected(_)) | None => watch.abandoned(machine, asked),
        }
    }

    async fn acquire_torn(&self, turns: u32) {
        let (watch, machine) = (&self.scene.watch, &self.machine.name);
        watch.asking(machine);
        let mut line = self.scene.exchange.line().await;
        let sent = self.scene.stopwatch.now();
        tokio::select! {
            biased;
            // An answer in time is discarded.
            _ = api::acquire(&mut line.connection, &self.machine.claim) => {}
            () = others_turns(turns) => {}
        }
        line.connection.close();
        self.scene.exchange.hang_up(line);
        watch.note(|statistics| statistics.torn += 1);
        watch.abandoned(machine, RequestSpan { sent, answered: self.scene.stopwatch.now() });
    }

    /// Sends an acquire. Returns `None` for a request without an answer, already counted as a failure.
    async fn ask(&self, claim: &Call) -> (Option<Acquired>, RequestSpan) {
        let scene = &self.scene;
        scene.watch.asking(&self.machine.name);
        let mut line = scene.exchange.line().await;
        let sent = scene.stopwatch.now();
        let answer = api::acquire(&mut line.connection, claim).await;
        let asked = RequestSpan { sent, answered: scene.stopwatch.now() };
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
        let asked = RequestSpan { sent, answered: scene.stopwatch.now() };
        scene.exchange.hang_up(line);
        match answer {
            Ok(HeartbeatReply::Renewed(renewal)) => {
                scene.watch.renewed(machine, &calls.session, Some(renewal), asked);
                self.held = Some(calls);
            }
            Ok(HeartbeatReply::Kept) => {
                scene.watch.renewed(machine, &calls.session, None, asked);
                self.held = Some(calls);
            }
            Ok(HeartbeatReply::Ended { reason }) => {
                scene.watch.over(machine, &calls.session, Some(&reason), asked)
            }
            Ok(HeartbeatReply::Missing) => scene.watch.over(machine, &calls.session, None, asked),
            Ok(HeartbeatReply::Unexpected(what)) => {
                scene.watch.unexpected(what.status);
                scene.watch.abandoned(machine, asked);
            }
            Err(failure) => {
                scene.watch.failed(&failure);
                scene.watch.abandoned(machine, asked);
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
        let asked = RequestSpan { sent, answered: scene.stopwatch.now() };
        scene.exchange.hang_up(line);
        match answer {
            Ok(Released::Now) => scene.watch.released(machine, &calls.session, asked),
            Ok(Released::NotLive) => scene.watch.release_missed(machine, &calls.session, until, asked),
            Ok(Released::Unexpected(what)) => scene.watch.unexpected(what.status),
            Err(failure) => scene.watch.failed(&failure),
        }
    }

    /// Ends every session of the subscriber except the client's own. Does nothing without an own session.
    async fn end_others(&self) -> Result<(), Error> {
        let (Some(own), Door::Devices { subscriber, .. }) = (&self.held, &self.scene.door) else {
            return Ok(());
        };
        let call = api::revoke_others_call(subscriber, &own.session)?;
        let mut line = self.scene.exchange.line().await;
        let answer = line.connection.send(&call).await;
        self.scene.exchange.hang_up(line);
        match answer {
            Ok(reply) if [204, 404].contains(&reply.status) => {}
            Ok(reply) => self.scene.watch.unexpected(reply.status),
            Err(failure) => self.scene.watch.failed(&failure),
        }
        Ok(())
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

pub(super) async fn others_turns(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}
