//! Steps on one session.

use async_trait::async_trait;
use seatkeeper_core::{
    Authority, Bucket, EndReason, LatestHeartbeat, LoadBound, Origin, Reach, RegistryTime, SessionId, Span,
};

use super::PostgresRegistry;
use super::fault::Fault;
use super::limit::run;
use super::read_pool::Target;
use super::row::{FoundRow, LiveRow, RenewedRow, Served, signed};
use crate::Error;
use crate::contract::{Ended, Heartbeat, Live, Sessions};
use crate::open_pool::{Closing, RenewalOutcome};

#[async_trait]
impl Sessions for PostgresRegistry {
    async fn heartbeat(&self, id: SessionId, who: &Authority, _origin: &Origin) -> Result<Heartbeat, Error> {
        let in_flight = self.clock.heartbeats().begin();
        let heartbeat = self.renew(id, who).await;
        match &heartbeat {
            Ok(_) => in_flight.written(),
            Err(Error::NotServing { .. }) => in_flight.not_served(),
            Err(_) => in_flight.failed(),
        }
        heartbeat
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
            |_| LoadBound::ONE_SESSION,
            |open, now, events| open.end(id, who, reason, origin, now, events),
        );
        Ok(made.await?.map_or(Ended::Missing, |made| match made.value {
            Closing::Ended(reason) => Ended::Now { reason, receipt: made.receipt },
            Closing::Left => Ended::Left,
            Closing::Missing => Ended::Missing,
        }))
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        let Some(live) = self.find(id, who).await? else { return Ok(None) };
        if live.expires_in > Span::ZERO {
            return Ok(Some(live));
        }
        let made = self.step(
            Target::Session(id),
            |seen| LoadBound::to_forget(seen.terms, seen.now),
            |open, now, events| {
                open.forget_over(now, events);
                open.pool.get(id).map(|session| open.live_view(session, now))
            },
        );
        Ok(made.await?.and_then(|made| made.value))
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<LatestHeartbeat>, Error> {
        let read = sqlx::query_as(include_str!("sql/renewed_since.sql"))
            .bind(self.section.number_of(bucket))
            .bind(signed(since.as_millis()));
        let rows: Vec<RenewedRow> =
            run(self.connection().await?, async |connection| read.fetch_all(connection).await).await??;
        Ok(rows.into_iter().map(RenewedRow::read).collect::<Result<_, _>>()?)
    }
}

impl PostgresRegistry {
    async fn renew(&self, id: SessionId, who: &Authority) -> Result<Heartbeat, Error> {
        if let Some(live) = self.renew_at_once(id, who).await? {
            return Ok(Heartbeat::Renewed(live.into()));
        }
        // The session belongs to another caller, or is over, or does not exist. Only a session that is over
        // needs a step.
        if self.find(id, who).await?.is_none() {
            return Ok(Heartbeat::Missing);
        }
        let made = self.step(
            Target::Session(id),
            |_| LoadBound::ONE_SESSION,
            |open, now, events| open.heartbeat(id, who, now, events),
        );
        Ok(made.await?.map_or(Heartbeat::Missing, |made| match made.value {
            RenewalOutcome::Renewed(liveness) => Heartbeat::Renewed(liveness),
            RenewalOutcome::Over { last_heartbeat } => {
                Heartbeat::Over { last_heartbeat, receipt: made.receipt }
            }
            RenewalOutcome::Missing => Heartbeat::Missing,
        }))
    }

    /// Renews a session that is not over, in one statement. Returns `None` if no session was renewed.
    async fn renew_at_once(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Fault> {
        let user = match &who.reach {
            Reach::Own(user) => Some(user.as_str()),
            Reach::Tenant => None,
        };
        let renew = sqlx::query_as(include_str!("sql/heartbeat.sql"))
            .bind(id.as_uuid())
            .bind(self.section.number_of(id.bucket()))
            .bind(who.kind.map(|kind| kind.as_str()))
            .bind(who.tenant.as_str())
            .bind(user)
            .bind(who.abroad.as_ref().map(|user| user.as_str()))
            .bind(signed(self.section.epoch(id.bucket())));
        let renewed =
            run(self.connection().await?, async |connection| renew.fetch_optional(connection).await).await?;
        let row: Option<LiveRow> = renewed.map_err(Fault::of_commit)?;
        Ok(row.map(LiveRow::read).transpose()?)
    }

    /// Reads a session that the caller may see, live or over.
    async fn find(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Fault> {
        let read = sqlx::query_as::<_, Served<FoundRow>>(include_str!("sql/session.sql"))
            .bind(id.as_uuid())
            .bind(self.section.number_of(id.bucket()));
        let Served { epoch, serving, rest: FoundRow(row) } =
            run(self.connection().await?, async |connection| read.fetch_one(connection).await).await??;
        self.serves(id.bucket(), epoch, serving)?;
        let live = row.map(LiveRow::read).transpose()?;
        Ok(live.filter(|live| who.covers(&live.pool, &live.session)))
    }
}
