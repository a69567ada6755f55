//! The caller of a connection: sends requests, counts them, and reports them to the checker.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::api::{self, Acquired, HeartbeatReply, Naming, Released, SessionCalls, Unexpected};
use crate::call::Call;
use crate::connection::Connection;
use crate::{Error, Failure, Moment, Operation, RequestSpan, Target};

/// The pause after a request without an answer, so that a server in trouble is not flooded.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The number of renewals in a TTL for a seat held only to keep the license full.
const RENEWALS_PER_TTL: u32 = 3;

/// A connection, and its license.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    connection: Connection,
    number: usize,
    license: usize,
    machines: u32,
    /// Requests and the server's mistakes are counted. Otherwise a mistake is an error.
    pub(crate) measured: bool,
}

/// A seat, with the requests that renew and release it.
pub(super) struct Seat {
    pub(super) calls: SessionCalls,
    /// The time of the next renewal, if the seat is only to be kept.
    pub(super) renewal_due: Moment,
    machine: Arc<str>,
}

/// A machine's prepared request for a seat.
pub(super) struct Ask {
    machine: Arc<str>,
    call: Call,
}

/// The outcome of a request for a seat.
pub(super) enum Taken {
    Seat(Box<Seat>),
    Full,
    /// No proper answer. The mistake has been counted.
    Nothing,
}

impl Caller {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Self {
        let connection = Connection::to(shared.target().clone());
        let license = number % shared.plan().license_keys.len().max(1);
        Self { shared, connection, number, license, machines: 0, measured: false }
    }

    pub(crate) fn takes_turn(&self) -> bool {
        self.shared.takes_turn()
    }

    /// Returns the number of this connection in the run.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of connections in the run.
    pub(super) fn concurrency(&self) -> usize {
        self.shared.plan().concurrency
    }

    pub(super) fn now(&self) -> Moment {
        self.shared.now()
    }

    pub(super) async fn connect(&mut self) -> Result<(), Error> {
        let doing = "connect";
        self.connection.ready().await.map_err(|source| Error::Unprepared { doing, source })
    }

    /// Prepares a fixed request.
    pub(super) fn call(&self, method: http::Method, path: &str, body: String) -> Result<Call, Error> {
        Call::new(self.shared.target(), method, path, body)
    }

    /// Returns a request for a seat by a machine that has not asked before.
    pub(super) fn new_machine(&mut self) -> Result<Ask, Error> {
        let machine: Arc<str> =
            format!("load-{:08x}-{}-{}", self.shared.tag(), self.number, self.machines).into();
        self.machines += 1;
        let key = &self.shared.plan().license_keys[self.license];
        let call = api::acquire_call(self.shared.target(), key, &machine)?;
        Ok(Ask { machine, call })
    }

    pub(super) async fn acquire(&mut self, ask: &Ask) -> Result<Taken, Error> {
        let sent = self.now();
        let answer = api::acquire(&mut self.connection, &ask.call).await;
        let asked = RequestSpan { sent, answered: self.now() };
        match answer {
            Ok(Acquired::Granted(grant)) => {
                self.count(Operation::Acquire, asked);
                self.shared.checker(self.license).granted(&ask.machine, &grant, asked);
                let calls = SessionCalls::new(self.shared.target(), grant.session_id.clone())?;
                let renewal_due = renewal_due(asked.sent, grant.expires_in_seconds);
                let machine = ask.machine.clone();
                Ok(Taken::Seat(Box::new(Seat { calls, renewal_due, machine })))
            }
            Ok(Acquired::Denied(denial)) => {
                self.count(Operation::Denied, asked);
                self.shared.checker(self.license).denied(&ask.machine, &denial, asked);
                Ok(Taken::Full)
            }
            Ok(Acquired::Unexpected(what)) => self.unexpected("acquire", what).map(|()| Taken::Nothing),
            Err(failure) => self.failed("acquire", failure).await.map(|()| Taken::Nothing),
        }
    }

    /// Admits a device without a session. Returns `true` if the admission evicted exactly one device of a
    /// full household. During the measurement, any other outcome is counted as an error.
    pub(super) async fn admit(&mut self, subscriber: &Target, device: u32) -> Result<bool, Error> {
        let name = format!("load-{:08x}-{}-{device}", self.shared.tag(), self.number);
        let call = api::admit_call(subscriber, &name, Naming::Nothing)?;
        let sent = self.now();
        let answer = api::acquire(&mut self.connection, &call).await;
        let asked = RequestSpan { sent, answered: self.now() };
        match answer {
            Ok(Acquired::Granted(grant)) => {
                let evicted = grant.evicted.len() == 1 && grant.seats_used == grant.seats_total;
                if evicted || !self.measured {
                    self.count(Operation::Eviction, asked);
                    return Ok(evicted);
                }
                let body = format!("{grant:?}");
                self.unexpected("admit a device", Unexpected { status: 201, body }).map(|()| false)
            }
            Ok(Acquired::Denied(denial)) => {
                let body = format!("{denial:?}");
                self.unexpected("admit a device", Unexpected { status: 403, body }).map(|()| false)
            }
            Ok(Acquired::Unexpected(what)) => self.unexpected("admit a device", what).map(|()| false),
            Err(failure) => self.failed("admit a device", failure).await.map(|()| false),
        }
    }

    /// Renews a seat. Returns `false` if the seat is lost.
    pub(super) async fn heartbeat(&mut self, seat: &mut Seat) -> Result<bool, Error> {
        let sent = self.now();
        let answer = api::heartbeat(&mut self.connection, &seat.calls).await;
        let asked = RequestSpan { sent, answered: self.now() };
        let session = &seat.calls.session;
        match answer {
            Ok(HeartbeatReply::Renewed(renewal)) => {
                self.count(Operation::Heartbeat, asked);
                let expires_in = renewal.expires_in_seconds;
                seat.renewal_due = renewal_due(sent, expires_in);
                self.shared.checker(self.license).renewed(&seat.machine, session, expires_in, asked);
                Ok(true)
            }
            Ok(HeartbeatReply::Ended { reason }) => {
                self.lost(session, &reason, asked);
                self.unexpected("renew a seat", Unexpected { status: 410, body: reason }).map(|()| false)
            }
            Ok(HeartbeatReply::Missing) => {
                self.lost(session, "", asked);
                let missing = Unexpected { status: 404, body: String::new() };
                self.unexpected("renew a seat", missing).map(|()| false)
            }
            Ok(HeartbeatReply::Kept) => {
                let bare = Unexpected { status: 204, body: String::new() };
                self.unexpected("renew a seat", bare).map(|()| true)
            }
            Ok(HeartbeatReply::Unexpected(what)) => self.unexpected("renew a seat", what).map(|()| true),
            Err(failure) => self.failed("renew a seat", failure).await.map(|()| true),
        }
    }

    pub(super) async fn release(&mut self, seat: &Seat) -> Result<(), Error> {
        let session = &seat.calls.session;
        let until = self.shared.checker(self.license).releasing(session);
        let sent = self.now();
        let answer = api::release(&mut self.connection, &seat.calls).await;
        let asked = RequestSpan { sent, answered: self.now() };
        match answer {
            Ok(Released::Now) => self.count(Operation::Release, asked),
            Ok(Released::NotLive) => {
                self.count(Operation::Release, asked);
                self.shared.checker(self.license).release_missed(session, until, asked);
            }
            Ok(Released::Unexpected(what)) => self.unexpected("release a seat", what)?,
            Err(failure) => self.failed("release a seat", failure).await?,
        }
        Ok(())
    }

    /// Sends a fixed request and checks its status.
    pub(super) async fn fixed(&mut self, call: &Call, status_expected: u16) -> Result<(), Error> {
        let sent = self.now();
        match self.connection.send(call).await {
            Ok(reply) if reply.status == status_expected => {
                self.count(Operation::Fixed, RequestSpan { sent, answered: self.now() });
                Ok(())
            }
            Ok(reply) => self.unexpected("send", Unexpected::from(&reply)),
            Err(failure) => self.failed("send", failure).await,
        }
    }

    fn lost(&self, session: &Arc<str>, reason: &str, asked: RequestSpan) {
        let mut checker = self.shared.checker(self.license);
        match reason {
            // An operator may end a held session.
            "revoked" | "entitlement_ended" => drop(checker.releasing(session)),
            _ => checker.lost(session, asked),
        }
    }

    fn count(&self, operation: Operation, asked: RequestSpan) {
        if self.measured {
            self.shared.tally().answered(operation, asked);
        }
    }

    fn unexpected(&self, doing: &'static str, what: Unexpected) -> Result<(), Error> {
        if !self.measured {
            return Err(what.while_doing(doing));
        }
        self.shared.tally().unexpected(what.status);
        Ok(())
    }

    async fn failed(&self, doing: &'static str, source: Failure) -> Result<(), Error> {
        if !self.measured {
            return Err(Error::Unprepared { doing, source });
        }
        self.shared.tally().failed(&source);
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
        Ok(())
    }
}

fn renewal_due(sent: Moment, expires_in_seconds: u64) -> Moment {
    sent + Duration::from_secs(expires_in_seconds) / RENEWALS_PER_TTL
}
