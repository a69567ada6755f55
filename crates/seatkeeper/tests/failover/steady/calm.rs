//! The end of a storm: compares the answers to its clients with the record.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use seatkeeper_load::Moment;

use super::caller::Storm;
use super::deeds::Deeds;
use super::licenses::make_license;
use super::{LateSessions, Pools, SESSIONS_EACH};
use crate::failover::support::answered;
use crate::harness::Client;
use crate::support::books::{Books, Story};
use crate::support::scene::License;

/// A storm that is over, with the answers to its clients.
pub(super) struct Calm {
    pub(super) storm: Arc<Storm>,
    /// Sessions may have expired, because their clients were pinned to a node.
    pub(super) may_expire: bool,
    pub(super) pools: Pools,
    pub(super) deeds: Vec<Deeds>,
    pub(super) background: Vec<License>,
    pub(super) late: Vec<LateSessions>,
}

/// The records of the tenant of licenses and devices, and of the tenant of capacities.
pub(super) struct Record {
    pub(super) seats: Books,
    pub(super) capacities: Books,
}

/// The sessions known to clients, with the instant of the latest answer.
struct Observation<'d> {
    storm: &'d Storm,
    admitted: HashMap<&'d str, Moment>,
    released: HashMap<&'d str, Moment>,
    contestable: HashSet<&'d str>,
    /// The expected reason for the end of a session, by pool.
    reasons: HashMap<&'d str, &'static str>,
}

impl Calm {
    /// Fails the test unless the record agrees with the clients.
    pub(super) fn is_on_record(&self, record: &Record) {
        self.is_within_limits(record);
        let told: usize =
            self.deeds.iter().map(|deeds| deeds.are_on_record(record.books(deeds), &self.storm)).sum();
        println!("{told} answered admissions are on record");
        if !self.may_expire {
            self.nobody_was_sent_away(record);
        }
        if self.storm.forgotten().is_none() {
            self.late.iter().for_each(|late| late.are_on_record(&record.seats));
        }
        for license in &self.background {
            let live = record.seats.live(&license.id).len();
            assert_eq!(live, SESSIONS_EACH as usize, "sessions that nobody ended of {}", license.id);
        }
    }

    fn is_within_limits(&self, record: &Record) {
        let licenses = self.pools.licenses.iter();
        let licenses = licenses.map(|pool| (&record.seats, pool.license.id.clone(), pool.license.seats));
        let devices = self.pools.devices.iter();
        let devices = devices.map(|screens| (&record.seats, screens.user.clone(), screens.limit));
        let capacities = self.pools.capacities.iter();
        let capacities = capacities.map(|work| (&record.capacities, work.capacity.pool(), 1));
        for (books, pool, limit) in licenses.chain(devices).chain(capacities) {
            let most = books.most_at_once(&pool);
            assert!(
                most <= i64::from(limit),
                "{most} sessions of {pool} at one instant, and its limit is {limit}"
            );
        }
    }

    fn nobody_was_sent_away(&self, record: &Record) {
        let told = self.told();
        let stories = record.seats.stories().chain(record.capacities.stories());
        let sent_away: Vec<_> =
            stories.filter(|(session, story)| told.is_sent_away(session, story)).collect();
        assert!(sent_away.is_empty(), "ended without being given back: {sent_away:?}");
    }

    fn told(&self) -> Observation<'_> {
        let mut told = Observation::new(&self.storm);
        for deeds in &self.deeds {
            told.admitted.extend(deeds.admitted.iter().map(|(session, answered)| (&**session, *answered)));
            told.released.extend(deeds.released.iter().map(|(session, answered)| (&**session, *answered)));
            told.contestable.extend(deeds.contestable.iter().map(|session| &**session));
            told.reasons.insert(&deeds.pool, deeds.given_back_as);
        }
        told
    }
}

impl<'d> Observation<'d> {
    fn new(storm: &'d Storm) -> Self {
        let (admitted, released) = (HashMap::new(), HashMap::new());
        Self { storm, admitted, released, contestable: HashSet::new(), reasons: HashMap::new() }
    }

    fn is_sent_away(&self, session: &str, story: &Story) -> bool {
        let Some(&given_back_as) = self.reasons.get(story.pool.as_str()) else { return false };
        let is_known = self.admitted.contains_key(session);
        if self.storm.forgotten().is_some() && (!is_known || self.is_ghost(session)) {
            return false;
        }
        match story.reason() {
            Some(reason) if reason == given_back_as => false,
            // A device without an answer claims again, and supersedes its own session.
            Some("superseded") => is_known && !self.contestable.contains(session),
            // A session without an answer has no heartbeats. Its client may claim in vain for longer than the session lasts.
            Some("expired") => is_known,
            // A capacity session without an answer stays, and the user's next claim finds it.
            None => is_known || !story.pool.contains('/'),
            Some(_) => true,
        }
    }

    /// Returns whether the ledger may have forgotten the release of a session. No client heartbeats such a
    /// session, which ends after its TTL.
    fn is_ghost(&self, session: &str) -> bool {
        let Some(&released) = self.released.get(session) else { return false };
        let is_admitted_anew = self.admitted.get(session).is_some_and(|&admitted| admitted > released);
        self.storm.may_forget(released) && !is_admitted_anew
    }
}

impl Record {
    fn books(&self, deeds: &Deeds) -> &Books {
        // Only a capacity's pool has a `/` in its name, between user and capacity.
        if deeds.pool.contains('/') { &self.capacities } else { &self.seats }
    }
}

/// Takes seats for sessions without heartbeats, which every rebuild has to fill in.
pub(super) async fn fill_background(admin: &Client, client: &Client, sessions: u64) -> Vec<License> {
    /// Longer than any test.
    const TTL_SECONDS: u64 = 24 * 3_600;
    let mut licenses = Vec::new();
    for _ in 0..sessions / u64::from(SESSIONS_EACH) {
        let license = make_license(admin, SESSIONS_EACH, TTL_SECONDS).await;
        let claims = (0..SESSIONS_EACH).map(async |machine| {
            let machine = format!("silent-{machine}");
            let answer = answered(async || client.acquire(&license.key, &machine).await).await;
            // A retry after a 503 may find the seat that the first attempt took.
            assert!([200, 201].contains(&answer.status), "{:#}", answer.body);
        });
        futures_util::future::join_all(claims).await;
        licenses.push(license);
    }
    licenses
}
