//! Sessions committed to the ledger without a server.

use std::collections::HashMap;

use seatkeeper_core::{
    Actor, Bucket, Change, Event, Holder, Origin, Particulars, PoolId, PoolKind, Region, RegistryTime, Seats,
    Session, SessionId, Span, TenantId, Tier, UserId, Users,
};
use seatkeeper_ledger::Ledger;
use uuid::Uuid;

use crate::error::Error;
use crate::product::{TENANT, TTL_SECONDS};

/// Events in one commit.
const BATCH_EVENTS: usize = 8_000;

/// A ledger, and a batch of admissions for it.
pub(crate) struct Records<'l> {
    ledger: &'l Ledger,
    epochs: HashMap<Bucket, u64>,
    waiting: Vec<Event>,
}

impl<'l> Records<'l> {
    pub(crate) async fn new(ledger: &'l Ledger) -> Result<Self, Error> {
        let epochs = ledger.buckets().await?.into_iter().map(|row| (row.bucket, row.epoch)).collect();
        Ok(Self { ledger, epochs, waiting: Vec::new() })
    }

    /// Takes every seat of a license without sessions, and returns the new sessions.
    #[expect(clippy::disallowed_methods, reason = "no registry tells the time before a node runs")]
    pub(crate) async fn take_seats(&mut self, license: Uuid, seats: u32) -> Result<Vec<Uuid>, Error> {
        let pool = PoolId::new(PoolKind::License, TenantId::from(TENANT), license.to_string());
        let epoch = self.epochs.get(&pool.bucket()).copied().unwrap_or_default();
        let now = RegistryTime::from_millis(chrono::Utc::now().timestamp_millis().unsigned_abs());
        let ttl = Span::from_secs(TTL_SECONDS.into());
        let mut sessions = Vec::new();
        for seat in 1..=seats {
            let id = SessionId::mint(now, pool.bucket(), Region::default(), rand::random());
            let session = Session {
                id,
                holder: Holder::new(format!("machine-{seat}")),
                users: Users::one(UserId::from("bench")),
                started: now,
                last_heartbeat: now,
                ttl,
                tier: Tier(0),
            };
            let particulars = Box::new(Particulars::default());
            let change = Change::Admitted { session: Box::new(session), expires: now + ttl, particulars };
            let origin = Origin { actor: Actor::User(UserId::from("bench")), request: None };
            let (seq, limit, version, pool) = (seat.into(), Seats(seats), 1, pool.clone());
            self.waiting.push(Event {
                seq,
                epoch,
                at: now,
                live: seat,
                limit,
                version,
                origin,
                change,
                pool,
            });
            sessions.push(id.as_uuid());
        }
        if self.waiting.len() >= BATCH_EVENTS {
            self.flush().await?;
        }
        Ok(sessions)
    }

    /// Commits the last batch.
    pub(crate) async fn finish(mut self) -> Result<(), Error> {
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.ledger.apply(&waiting).await?;
        }
        Ok(())
    }
}
