//! Rate limits of callers: a burst at once, and a steady rate afterwards.
//!
//! Nodes that share a Redis count together, by a script equal to the pure function of `rate`. Without a Redis
//! a node counts in memory.

mod key;
mod local;
mod rate;
mod shared;
mod standing;
mod streams;
mod unknown_sessions;

use std::net::IpAddr;

use seatkeeper_core::{PoolKind, SessionId, TenantId};
use seatkeeper_redis::Servers;

use crate::auth::Caller;
use crate::error::Error;
use crate::settings::{LimitsSettings, ServerSettings, WhenRedisDown};
use key::Key;
use local::Local;
use rate::{Rate, Verdict};
use shared::Shared;
pub(crate) use standing::{Standing, StandingNote};
pub(crate) use streams::StreamPermit;
use streams::{StreamCount, Streams};
use unknown_sessions::Searches;
pub(crate) use unknown_sessions::UnknownSessions;

/// Joins of a group within an hour, besides the limits of the users who join.
pub(crate) const GROUP_JOINS_PER_HOUR: u64 = 20;

/// Joins of a group by one guest within an hour: half of the group's joins, so that a guest leaves joins for the others.
pub(crate) const GUEST_JOINS_PER_HOUR: u64 = GROUP_JOINS_PER_HOUR / 2;

/// The rate limits of all callers.
pub(crate) struct Limits {
    rates: Rates,
    local: Local,
    /// `None` if this node counts for itself.
    shared: Option<Shared>,
    streams: Streams,
    searches: Searches,
    when_redis_down: WhenRedisDown,
}

/// The configured rates. `None` in an [`OfApi`] means no limit.
struct Rates {
    licenses: OfApi,
    devices: OfApi,
    capacities: OfApi,
    service: OfApi,
    license_tokens_per_address: Option<Rate>,
    license_tokens_per_key: Option<Rate>,
    releases_per_address: Option<Rate>,
}

struct OfApi {
    acquires: Option<Rate>,
    heartbeats: Option<Rate>,
}

impl Limits {
    /// Creates the limits of `settings`, counted in `redis` if nodes share a Redis.
    pub(crate) fn new(settings: &LimitsSettings, redis: Option<Servers>) -> Self {
        Self {
            rates: Rates::from_settings(settings),
            local: Local::new(),
            shared: redis.map(Shared::new),
            streams: Streams::default(),
            searches: Searches::default(),
            when_redis_down: settings.when_redis_down,
        }
    }

    /// Counts a request for a seat and awaits `acquire`. Returns `Err(TooOften)` without `acquire` if the caller
    /// exceeds the rate.
    ///
    /// An acquire that finds its rate unused at this node is counted in Redis while `acquire` runs, so that
    /// counting adds no latency. Over several nodes, a caller may thus get one more acquire for each further node
    /// than the rate allows. Afterwards the node knows the caller's standing in Redis, and later acquires wait for the
    /// count.
    pub(crate) async fn acquire<T>(
        &self,
        kind: PoolKind,
        who: &Caller,
        note: &StandingNote,
        acquire: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(rate) = self.rates.of_caller(kind, who).acquires else { return acquire.await };
        let key = Key::of_acquires(kind, who);
        let counts_beside = self.shared.as_ref().filter(|_| self.when_redis_down == WhenRedisDown::Allow);
        // Redis counts the first use before later uses of this node, so a single node keeps to the rate exactly.
        let first =
            counts_beside.and_then(|shared| self.local.count_first(key, rate, || shared.count(key, rate)));
        let Some((here, counted)) = first else {
            let verdict = self.verdict(key, rate).await?;
            self.local.learn(key, verdict);
            obey(verdict, rate, note)?;
            return acquire.await;
        };
        let counted = async {
            let verdict = counted.await.unwrap_or(here);
            self.local.learn(key, verdict);
            note.write(Standing::new(rate, verdict));
        };
        // `join!` moves its futures, and `acquire` is large: the box keeps the move small.
        tokio::join!(counted, Box::pin(acquire)).1
    }

    /// Counts a request for a license token by the address of the client. Returns [`Error::TooOften`] if the address asks too
    /// often.
    pub(crate) async fn license_token_by_address(
        &self,
        ip: Option<IpAddr>,
        note: &StandingNote,
    ) -> Result<(), Error> {
        let Some(rate) = self.rates.license_tokens_per_address else { return Ok(()) };
        self.count(Key::of_license_tokens_at(ip), rate, note).await
    }

    /// Counts a request for a license token by the license key, whether there is such a license or not. Returns
    /// [`Error::TooOften`] if the key is shown too often.
    pub(crate) async fn license_token_by_key(
        &self,
        tenant: &TenantId,
        license_key: &str,
        note: &StandingNote,
    ) -> Result<(), Error> {
        let Some(rate) = self.rates.license_tokens_per_key else { return Ok(()) };
        self.count(Key::of_license_tokens_for(tenant, license_key), rate, note).await
    }

    /// Counts a release by code by the address of the client. Returns [`Error::TooOften`] if the address asks too often.
    pub(crate) async fn release_by_address(
        &self,
        ip: Option<IpAddr>,
        note: &StandingNote,
    ) -> Result<(), Error> {
        let Some(rate) = self.rates.releases_per_address else { return Ok(()) };
        self.count(Key::of_releases_at(ip), rate, note).await
    }

    /// Counts a join of a group. `guest` is the caller, unless the caller is the subscriber of the screen. Returns
    /// [`Error::TooOften`] after [`GUEST_JOINS_PER_HOUR`] joins by the guest, or after [`GROUP_JOINS_PER_HOUR`] joins by all
    /// users together.
    pub(crate) async fn group_join(
        &self,
        group: SessionId,
        guest: Option<&Caller>,
        note: &StandingNote,
    ) -> Result<(), Error> {
        if let Some(guest) = guest {
            let key = Key::of_guest_joins(group, guest);
            self.count(key, Rate::per_hour(GUEST_JOINS_PER_HOUR), note).await?;
        }
        self.count(Key::of_group_joins(group), Rate::per_hour(GROUP_JOINS_PER_HOUR), note).await
    }

    /// Counts an event stream about `sessions` among the streams of a caller on this node, until the permit is dropped. Returns
    /// `Err(CallerStreamsOpen)` if the caller has the maximum of streams open: `event_streams_per_user_max` for a user, and half of `event_streams_max` for a caller
    /// with the scope `service` or `admin`. One caller leaves places of the node for the others: the streams of a user are
    /// about at most an eighth of `event_streams_max` sessions, those of a caller with such a scope about at most half.
    pub(crate) fn event_stream(
        &self,
        who: &Caller,
        sessions: usize,
        settings: &ServerSettings,
    ) -> Result<StreamPermit, Error> {
        let places = settings.event_streams_max;
        let (streams, share) = match who.scopes.service || who.scopes.admin {
            true => (places.div_ceil(2), places.div_ceil(2)),
            false => (settings.event_streams_per_user_max, places / 8),
        };
        // No stream of a single session is refused for its session.
        let max = StreamCount { streams, sessions: share.max(streams) };
        let permit = self.streams.open(Key::of_event_streams(who), sessions, max);
        permit.map_err(|max| Error::CallerStreamsOpen { max })
    }

    /// Counts a heartbeat and awaits `beat`. Returns `Err(TooOften)` if the session's heartbeats exceed the
    /// rate.
    ///
    /// Most heartbeats are counted on this node alone: a heartbeat that comes at least an interval of the rate
    /// after the previous heartbeat at this node, and a heartbeat beyond the rate at this node. Over several
    /// nodes, a session may thus get one more heartbeat per node and interval than the rate allows. Other
    /// heartbeats are counted in Redis as well, while `beat` runs, so that counting adds no latency. Then a
    /// heartbeat beyond the rate may still have been carried out.
    pub(crate) async fn heartbeat<T>(
        &self,
        (kind, id): (PoolKind, SessionId),
        who: &Caller,
        note: &StandingNote,
        beat: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(rate) = self.rates.of_caller(kind, who).heartbeats else { return beat.await };
        let key = Key::of_heartbeats(id, who);
        let here = self.local.count(key, rate);
        let Some(shared) = self.shared.as_ref().filter(|_| here.passes && !rate.is_first(here)) else {
            obey(here, rate, note)?;
            return beat.await;
        };
        let counted = async { obey(self.verdict_of(shared, key, rate, || here).await?, rate, note) };
        // `join!` moves its futures, and `beat` is large: the box keeps the move small.
        let (counted, beat) = tokio::join!(counted, Box::pin(beat));
        counted.and(beat)
    }

    /// Returns the caller's quota of searches for sessions that never were, by heartbeats and by shared event streams: as many
    /// as acquires, and each node counts for itself.
    pub(crate) fn unknown_sessions<'a>(&'a self, kind: PoolKind, who: &'a Caller) -> UnknownSessions<'a> {
        let rate = self.rates.of_caller(kind, who).acquires;
        UnknownSessions { local: &self.local, searches: &self.searches, kind, who, rate }
    }

    async fn count(&self, key: Key, rate: Rate, note: &StandingNote) -> Result<(), Error> {
        obey(self.verdict(key, rate).await?, rate, note)
    }

    /// Counts a use in Redis, or on this node if nodes share no Redis.
    async fn verdict(&self, key: Key, rate: Rate) -> Result<Verdict, Error> {
        let here = || self.local.count(key, rate);
        match &self.shared {
            Some(shared) => self.verdict_of(shared, key, rate, here).await,
            None => Ok(here()),
        }
    }

    /// Returns the verdict of Redis, or `here` of this node if Redis does not answer and the settings allow.
    async fn verdict_of(
        &self,
        shared: &Shared,
        key: Key,
        rate: Rate,
        here: impl FnOnce() -> Verdict,
    ) -> Result<Verdict, Error> {
        match (shared.count(key, rate).await, self.when_redis_down) {
            (Some(verdict), _) => Ok(verdict),
            (None, WhenRedisDown::Allow) => Ok(here()),
            (None, WhenRedisDown::Deny) => Err(Error::Uncounted),
        }
    }
}

/// Notes the verdict for the answer's headers. Returns `Err(TooOften)` if the use does not pass.
fn obey(verdict: Verdict, rate: Rate, note: &StandingNote) -> Result<(), Error> {
    let standing = Standing::new(rate, verdict);
    let wait_seconds = standing.wait_seconds;
    note.write(standing);
    if verdict.passes { Ok(()) } else { Err(Error::TooOften { wait_seconds }) }
}

impl Rates {
    fn from_settings(settings: &LimitsSettings) -> Self {
        let of_api = |acquires, heartbeats| OfApi {
            acquires: Rate::per_minute(acquires),
            heartbeats: Rate::per_minute(heartbeats),
        };
        let LimitsSettings {
            licenses_acquires_per_minute,
            licenses_heartbeats_per_minute,
            devices_acquires_per_minute,
            devices_heartbeats_per_minute,
            capacities_acquires_per_minute,
            service_acquires_per_minute,
            service_heartbeats_per_minute,
            license_tokens_per_address_per_minute,
            license_tokens_per_key_per_minute,
            releases_per_address_per_minute,
            when_redis_down: _,
        } = *settings;
        Self {
            licenses: of_api(licenses_acquires_per_minute, licenses_heartbeats_per_minute),
            devices: of_api(devices_acquires_per_minute, devices_heartbeats_per_minute),
            // Capacities have no heartbeats.
            capacities: of_api(capacities_acquires_per_minute, 0),
            service: of_api(service_acquires_per_minute, service_heartbeats_per_minute),
            license_tokens_per_address: Rate::per_minute(license_tokens_per_address_per_minute),
            license_tokens_per_key: Rate::per_minute(license_tokens_per_key_per_minute),
            releases_per_address: Rate::per_minute(releases_per_address_per_minute),
        }
    }

    fn of_caller(&self, kind: PoolKind, who: &Caller) -> &OfApi {
        match kind {
            _ if who.scopes.service => &self.service,
            PoolKind::License => &self.licenses,
            PoolKind::Subscriber | PoolKind::Group => &self.devices,
            PoolKind::Capacity => &self.capacities,
        }
    }
}
