//! Sessions that start, get upgraded, end or expire at random, and the exact amount due for each.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use reqwest::Method;
use seatkeeper_core::RegistryTime;
use serde_json::{Value, json};
use uuid::{Builder, Uuid};

use super::office::{Office, TERM};
use crate::harness::sink::Record;
use crate::invariants::support::dice::Dice;
use crate::invariants::support::scene::text;

const SESSIONS: &str = "/api/v1/capacities/sessions";

pub(super) const TENANTS: [Uuid; 3] =
    [Uuid::from_u128(0x7e01 << 64), Uuid::from_u128(0x7e02 << 64), Uuid::from_u128(0x7e03 << 64)];

/// A session as the test knows it.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) session: String,
    pub(super) tier: u8,
    tenant: usize,
    user: Uuid,
    started: RegistryTime,
    /// The time of the end by request, or `None`.
    ended: Option<RegistryTime>,
}

pub(super) struct Lives {
    pub(super) all: Vec<Life>,
    /// Indices of sessions without an end by request.
    open: Vec<usize>,
    of_user: HashMap<Uuid, Vec<usize>>,
    dice: Dice,
}

/// A request of the test.
#[derive(Clone, Copy)]
enum Ask {
    Start { tenant: usize, user: Uuid, tier: u8 },
    Upgrade { of: usize, tier: u8 },
    End { of: usize },
}

impl Life {
    /// Returns the held time until `end` in milliseconds, and the exact amount in millionths, rounded once,
    /// half up.
    pub(super) fn total(&self, end: RegistryTime) -> (u64, u64) {
        let over = self.ended.unwrap_or(end).min(end).min(self.started + TERM);
        let held = over.since(self.started).as_millis();
        let twice = u128::from(held) * u128::from(self.tier) * 2 + 2_592;
        (held, u64::try_from(twice / (2 * 2_592)).expect("a small number"))
    }

    fn is_over(&self, now: RegistryTime) -> bool {
        self.ended.is_some() || self.started + TERM <= now
    }
}

impl Lives {
    pub(super) fn new(seed: u64) -> Self {
        let (all, open, of_user) = (Vec::new(), Vec::new(), HashMap::new());
        Self { all, open, of_user, dice: Dice::new(seed, 2) }
    }

    /// Sends random requests at one instant of the clock, until the total number of sessions is `sessions`.
    pub(super) async fn act(&mut self, office: &Office, sessions: u64) {
        let now = office.now();
        self.open.retain(|&index| !self.all[index].is_over(now));
        let (mut asks, mut missing) = (Vec::new(), sessions.saturating_sub(self.all.len() as u64));
        while missing > 0 {
            let ask = self.ask();
            missing -= u64::from(!matches!(ask, Ask::End { .. }));
            asks.push(ask);
        }
        let answers = join_all(asks.iter().map(|ask| self.answer(office, ask))).await;
        for (ask, answer) in asks.into_iter().zip(answers) {
            self.note(ask, &answer, now);
        }
    }

    fn ask(&mut self) -> Ask {
        let choice = self.dice.below(10);
        if choice < 5 && !self.open.is_empty() {
            let at = self.dice.below(self.open.len() as u64) as usize;
            let of = self.open[at];
            let tier = self.all[of].tier;
            if choice < 2 && tier < 3 {
                self.open.swap_remove(at);
                return Ask::Upgrade { of, tier: tier + 1 + self.dice.below(u64::from(3 - tier)) as u8 };
            }
            if choice < 4 {
                self.open.swap_remove(at);
                return Ask::End { of };
            }
        }
        let tenant = self.dice.below(TENANTS.len() as u64) as usize;
        let user = u128::from(self.dice.below(u64::MAX)) << 64 | 1;
        Ask::Start { tenant, user: Uuid::from_u128(user), tier: 1 + self.dice.below(3) as u8 }
    }

    async fn answer(&self, office: &Office, ask: &Ask) -> Value {
        let put = async |tenant: usize, user: Uuid, tier: u8| {
            let body = json!({
                "userObjectId": user, "tenantObjectId": TENANTS[tenant], "capacityId": user, "sessionKind": tier,
            });
            office.ask(tenant, Method::PUT, SESSIONS, Some(body)).await.expect(201)
        };
        match *ask {
            Ask::Start { tenant, user, tier } => put(tenant, user, tier).await,
            Ask::Upgrade { of, tier } => put(self.all[of].tenant, self.all[of].user, tier).await,
            Ask::End { of } => {
                let life = &self.all[of];
                let path = format!("{SESSIONS}/{}", life.session);
                office.ask(life.tenant, Method::DELETE, &path, None).await.expect(204)
            }
        }
    }

    fn note(&mut self, ask: Ask, answer: &Value, now: RegistryTime) {
        let (tenant, user, tier) = match ask {
            Ask::Start { tenant, user, tier } => (tenant, user, tier),
            Ask::Upgrade { of, tier } => {
                self.all[of].ended = Some(now);
                (self.all[of].tenant, self.all[of].user, tier)
            }
            Ask::End { of } => {
                self.all[of].ended = Some(now);
                return;
            }
        };
        let started: DateTime<Utc> = text(&answer["sessionStartUtc"]).parse().expect("a time");
        assert_eq!(started.timestamp_millis() as u64, now.as_millis());
        let session = text(&answer["sessionId"]);
        let index = self.all.len();
        self.all.push(Life { session, tier, tenant, user, started: now, ended: None });
        self.open.push(index);
        self.of_user.entry(user).or_default().push(index);
    }

    /// Returns the session of a record: the session of its user whose id, hashed with the window's start,
    /// gives the record's id.
    pub(super) fn session_of(&self, record: &Record) -> String {
        let user: Uuid = record.user_object_id.parse().expect("a UUID");
        assert_eq!(record.capacity_id, record.user_object_id);
        let starts: DateTime<Utc> = record.window_start_utc.parse().expect("a time");
        let mut lives = self.of_user[&user].iter().map(|&index| &self.all[index]);
        let life = lives.find(|life| {
            let name = format!("usage-record/{}/{}", starts.timestamp_millis(), life.session);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&digest(&SHA256, name.as_bytes()).as_ref()[..16]);
            Builder::from_custom_bytes(bytes).into_uuid().to_string() == record.record_id
        });
        let life = life.unwrap_or_else(|| panic!("a record of no session: {record:?}"));
        assert_eq!(record.tenant_object_id, TENANTS[life.tenant].to_string());
        life.session.clone()
    }
}
