//! The registry in PostgreSQL: live sessions in tables that all nodes share, changed under row locks.
//!
//! The rule decides here, in the node: a step looks at the pool, decides, and writes what changed together with its
//! events. Whoever writes holds the row of the bucket; a step that looked before it had the row fails if anything has
//! changed since, and looks again with the row in its hands. A heartbeat of a session that is not over is one
//! statement and holds nothing but that session. One clock decides, the database's, within its lease
//! (`postgres/clock.rs`).

mod backlog;
mod clock;
mod connect;
mod fault;
mod from_row;
mod heartbeat;
mod journal;
mod look;
mod open;
mod rebuild;
mod repair_clock;
mod row;
mod section;
mod step;
mod sweep;
mod unreadable;
mod write;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use seatkeeper_core::{
    Authority, BUCKETS, Bucket, EndReason, Origin, PoolId, Region, RegistryTime, Session, SessionId, Sight,
    Terms,
};
use seatkeeper_postgres::{Connections, PostgresUrl};
use tokio::sync::Mutex;

use crate::contract::{
    Claimed, Ended, EndedAll, Heartbeat, JournalRead, Live, PoolView, Receipt, Registry, Request, Swept,
};
use crate::open_pool::Closing;
use crate::reckoning::{Known, Reckoning};
use crate::{Epochs, Error, Share};
use backlog::Backlog;
pub use clock::PostgresClock;
use clock::TimeTold;
use look::Target;
pub use repair_clock::{RegistryRepair, repair_clock};
use section::Section;

/// Live sessions in PostgreSQL.
pub struct PostgresRegistry {
    connections: Connections,
    turns: Box<[Mutex<()>]>,
    backlog: Backlog,
    region: Region,
    section: Section,
    journal_events_max: usize,
    clock: Arc<PostgresClock>,
    reckoning: Reckoning,
}

impl PostgresRegistry {
    /// A node's way to the registry in the database at `url`, over at most `connections_max` connections. A bucket is
    /// served in the epoch that is known of it, and takes no admission while `journal_events_max` events wait in the
    /// journal.
    pub async fn connect(
        url: &PostgresUrl,
        connections_max: u32,
        epochs: Arc<Epochs>,
        region: Region,
        journal_events_max: usize,
    ) -> Result<Self, Error> {
        let connections = connect::connections(url, connections_max)?;
        connect::migrate(&connections).await.map_err(|error| Error::Unavailable(Box::new(error)))?;
        let clock = Arc::new(PostgresClock::new(connections.clone()));
        Ok(Self::of_section(Section::Rebuilt(epochs), connections, clock, region, journal_events_max))
    }

    /// Beside this registry, and over the same connections, another one in the same database, which is never rebuilt:
    /// for sessions that last without heartbeats. The two have no session in common. Its receipts are all of one epoch;
    /// its events bear the epoch in `epochs`, for they go on record whatever epoch their bucket is in.
    pub fn lasting(&self, epochs: Arc<Epochs>) -> Self {
        let (connections, clock) = (self.connections.clone(), Arc::clone(&self.clock));
        Self::of_section(Section::Lasting(epochs), connections, clock, self.region, self.journal_events_max)
    }

    /// Returns the clock of the database's server, which all registries over these connections share.
    pub fn clock(&self) -> &Arc<PostgresClock> {
        &self.clock
    }

    fn of_section(
        section: Section,
        connections: Connections,
        clock: Arc<PostgresClock>,
        region: Region,
        journal_events_max: usize,
    ) -> Self {
        let turns = (0..BUCKETS).map(|_| Mutex::new(())).collect();
        Self {
            connections,
            turns,
            backlog: Backlog::new(),
            region,
            section,
            journal_events_max,
            clock,
            reckoning: Reckoning::default(),
        }
    }
}

#[async_trait]
impl Registry for PostgresRegistry {
    async fn now(&self) -> Result<RegistryTime, Error> {
        let mut connection = self.connection().await?;
        let asked = Instant::now();
        let TimeTold { now, runs } = self.clock.tell_time(&mut connection).await?;
        if runs {
            self.reckoning.note(now, asked);
        }
        Ok(now)
    }

    async fn about_now(&self) -> Result<RegistryTime, Error> {
        match self.reckoning.known() {
            Known::Time(time) => Ok(time),
            Known::Ask(_turn) => self.now().await,
        }
    }

    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        Ok(self.open_pool(pool, seq, terms, &live).await?)
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let Request { pool, claim, policy, .. } = request;
        let target =
            Target::Pool { id: pool, holder: Some(&claim.holder), asked: [claim.session, claim.replace] };
        loop {
            self.room_in_journal().await?;
            let made = self.step(
                target,
                |seen| Sight::to_admit(seen.terms, policy, seen.live, seen.now),
                |open, now, events| {
                    let fresh = SessionId::mint(now, pool.bucket(), self.region, rand::random());
                    let (answer, _) = open.claim(request, fresh, now, events);
                    (answer, open.pool.live(), open.limit())
                },
            );
            let made = made.await?.ok_or(Error::PoolNotOpen)?;
            if let (Some(answer), live, limit) = made.value {
                return Ok(Claimed { answer, live, limit, receipt: made.receipt });
            }
        }
    }

    async fn heartbeat(&self, id: SessionId, who: &Authority, _origin: &Origin) -> Result<Heartbeat, Error> {
        Ok(self.renew(id, who).await?)
    }

    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error> {
        let made = self.step(
            Target::Session(id),
            |_| Sight::ONE_SESSION,
            |open, now, events| open.end(id, who, reason, origin, now, events),
        );
        Ok(made.await?.map_or(Ended::Missing, |made| match made.value {
            Closing::Ended(reason) => Ended::Now { reason, receipt: made.receipt },
            Closing::Left => Ended::Left,
            Closing::Missing => Ended::Missing,
        }))
    }

    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |_| Sight::Whole,
            |open, now, events| open.end_all(reason, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| Sight::to_revise(seen.terms, Some(terms), seen.now),
            |open, now, events| open.revise(terms, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        Ok(self.live_session(id, who).await?)
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| match Sight::to_forget(seen.terms, seen.now) {
                Sight::Stalest(_) if max < seen.live as usize => Sight::Stalest(max as u32),
                Sight::Stalest(_) | Sight::Whole => Sight::Whole,
            },
            |open, now, events| {
                open.forget_over(now, events);
                let sessions =
                    open.pool.stalest_first().take(max).map(|session| open.live_view(session, now)).collect();
                PoolView { live: open.pool.live(), terms: open.pool.terms(), sessions }
            },
        );
        Ok(made.await?.ok_or(Error::PoolNotOpen)?.value)
    }

    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        Ok(self.sweep_bucket(bucket, max).await?)
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        Ok(self.due_in(bucket).await?)
    }

    async fn due_buckets(&self) -> Result<Vec<Bucket>, Error> {
        Ok(self.all_due().await?)
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<(SessionId, RegistryTime)>, Error> {
        Ok(self.heard_since(bucket, since).await?)
    }

    async fn journal_read(&self, share: Share, max: usize) -> Result<JournalRead, Error> {
        Ok(self.read_journal(share, max).await?)
    }

    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        Ok(self.acknowledge(through).await?)
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    async fn journal_stirred(&self, share: Share) {
        self.backlog.stirred(share).await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        Ok(self.end_of_journal(bucket).await?)
    }
}
