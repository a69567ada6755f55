//! A group is no way around the plan: through joins, guests, leaves, silent hosts and evictions, the screens of groups
//! and of single devices together never exceed the plan, and no group has more members than the plan allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Harness};
use crate::invariants::support::books::{Books, proof_of};
use crate::invariants::support::knobs;
use crate::invariants::support::scene::patient;
use crate::invariants::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";
const GROUPS: &str = "/api/v1/devices/groups";

/// Short, so that members that fall silent expire while the storm goes on.
const TTL_SECONDS: &str = "2";
const MEMBERS_MAX: u32 = 3;
const SCREENS: u32 = 2;
const USERS: usize = 4;
const LANES_PER_USER: usize = 3;
const DEVICES_PER_USER: u32 = 6;

/// The least number of steps: with fewer, not every kind of step happens.
const STEPS_MIN: u32 = 500;

/// Time limit until the ledger has committed every end, on a busy machine.
const ON_RECORD_MAX: Duration = Duration::from_secs(60);

/// A membership known to a lane.
#[derive(Clone)]
struct Membership {
    group: Value,
    session: Value,
    /// The last answer named the member as the host.
    is_host: bool,
}

/// A user's devices in one lane of the storm.
struct Lane {
    client: Client,
    dice: StdRng,
    /// Join codes, known to the devices of all users.
    codes: Arc<Mutex<Vec<Value>>>,
    single: Option<(u32, Value)>,
    members: Vec<Membership>,
    /// Number of answers by step and status.
    seen: BTreeMap<(&'static str, u16), u32>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_groups_stays_within_the_plan() {
    let (steps, seed) = (knobs::storm_rounds().max(STEPS_MIN), knobs::seed());
    let harness = patient(&[("DEVICES_TTL_SECONDS", TTL_SECONDS)]);
    let codes = Arc::default();
    let mut lanes = Vec::new();
    for user in 0..USERS {
        let subscriber = Subscriber::make(&harness.admin(), &format!("group-{user}"), SCREENS, "evict").await;
        let rules = json!({ "group_members_max": MEMBERS_MAX, "group_scope": "any_user" });
        harness.admin().patch(&subscriber.plan_path(), Some(rules)).await.expect(200);
        for lane in 0..LANES_PER_USER {
            let seed = seed.wrapping_add((user * LANES_PER_USER + lane) as u64);
            let lane = Lane::new(harness.client(&subscriber.user), seed, &codes);
            lanes.push(tokio::spawn(lane.run(steps.div_ceil((USERS * LANES_PER_USER) as u32))));
        }
    }
    let mut seen = BTreeMap::new();
    for lane in lanes {
        for (step, count) in lane.await.expect("a lane") {
            *seen.entry(step).or_insert(0) += count;
        }
    }
    println!("{seen:?}");
    for happened in [
        ("admit", 201),
        ("create", 201),
        ("join", 201),
        ("join", 403),
        ("beat", 200),
        ("beat", 410),
        ("leave", 204),
        ("host lost", 0),
    ] {
        assert!(seen.contains_key(&happened), "never happened: {happened:?} in {seen:?}");
    }
    on_record(&harness).await;
}

impl Lane {
    fn new(client: Client, seed: u64, codes: &Arc<Mutex<Vec<Value>>>) -> Self {
        let (dice, codes) = (StdRng::seed_from_u64(seed), Arc::clone(codes));
        Self { client, dice, codes, single: None, members: Vec::new(), seen: BTreeMap::new() }
    }

    async fn run(mut self, steps: u32) -> BTreeMap<(&'static str, u16), u32> {
        for _ in 0..steps {
            match self.dice.random_range(0..13) {
                0 => self.admit().await,
                1 | 2 => self.create().await,
                3..=5 => self.join().await,
                6..=8 => self.beat().await,
                9 => self.leave().await,
                10 => self.fall_silent(),
                11 => self.lose_a_host(),
                _ => self.revoke().await,
            }
        }
        self.seen
    }

    fn device(&mut self) -> (u32, Value) {
        let number = self.dice.random_range(0..DEVICES_PER_USER);
        (number, json!({ "device_id": format!("device-{number}"), "device_type": "tv" }))
    }

    async fn admit(&mut self) {
        let (number, ask) = self.device();
        let answer = self.client.post(DEVICES, ask).await;
        self.count("admit", &answer, &[200, 201]);
        let used = answer.body["devices_in_use"].as_u64();
        assert!(used.is_some_and(|used| used <= u64::from(SCREENS)), "{:#}", answer.body);
        self.single = Some((number, answer.body["session_id"].clone()));
    }

    async fn create(&mut self) {
        if self.single.is_none() {
            self.admit().await;
        }
        let Some((number, session)) = self.single.take() else { return };
        let device_id = format!("device-{number}");
        let ask = json!({ "device_id": device_id, "device_type": "tv", "session_id": session });
        let answer = self.client.post(GROUPS, ask).await;
        self.count("create", &answer, &[201, 403, 404]);
        if answer.status == 201 {
            self.codes.lock().expect("codes").push(answer.body["join_code"].clone());
            self.joined(&answer);
        }
    }

    async fn join(&mut self) {
        let code = {
            let codes = self.codes.lock().expect("codes");
            // The latest groups are the likeliest to live.
            codes.iter().rev().nth(self.dice.random_range(0..3)).cloned()
        };
        let Some(code) = code else { return };
        let (_, mut ask) = self.device();
        ask["join_code"] = code;
        let answer = self.client.post(&format!("{GROUPS}/join"), ask).await;
        self.count("join", &answer, &[201, 403, 429]);
        if answer.status == 201 {
            assert_members(&answer);
            self.joined(&answer);
        }
    }

    async fn beat(&mut self) {
        let Some(at) = self.any_member() else { return };
        let ask = json!({ "session_id": self.members[at].session });
        let answer = self.client.post(&format!("{GROUPS}/heartbeat"), ask).await;
        self.count("beat", &answer, &[200, 410, 404]);
        if answer.status != 200 {
            self.members.swap_remove(at);
            return;
        }
        assert_members(&answer);
        self.members[at].is_host = answer.body["host_session_id"] == self.members[at].session;
    }

    async fn leave(&mut self) {
        let Some(at) = self.any_member() else { return };
        let Membership { group, session, .. } = self.members.swap_remove(at);
        let ask = json!({ "group_id": group, "session_id": session });
        let answer = self.client.post(&format!("{GROUPS}/leave"), ask).await;
        self.count("leave", &answer, &[204, 404]);
    }

    /// Forgets the host of a group without a word: another member succeeds it.
    fn lose_a_host(&mut self) {
        if let Some(at) = self.members.iter().position(|member| member.is_host) {
            self.members.swap_remove(at);
            *self.seen.entry(("host lost", 0)).or_insert(0) += 1;
        }
    }

    /// Forgets a member without a word, as a device that lost its power.
    fn fall_silent(&mut self) {
        if let Some(at) = self.any_member() {
            self.members.swap_remove(at);
        }
    }

    async fn revoke(&mut self) {
        let Some(at) = self.any_member() else { return };
        let group = self.members[at].group.as_str().expect("an id").to_owned();
        let answer = self.client.delete(&format!("{DEVICES}/{group}")).await;
        self.count("revoke", &answer, &[204, 404]);
    }

    fn any_member(&mut self) -> Option<usize> {
        (!self.members.is_empty()).then(|| self.dice.random_range(0..self.members.len()))
    }

    fn joined(&mut self, answer: &Answer) {
        let (group, session) = (answer.body["group_id"].clone(), answer.body["session_id"].clone());
        let is_host = answer.body["host_session_id"] == session;
        self.members.push(Membership { group, session, is_host });
    }

    #[track_caller]
    fn count(&mut self, step: &'static str, answer: &Answer, expected: &[u16]) {
        assert!(expected.contains(&answer.status), "{step}: {} {:#}", answer.status, answer.body);
        *self.seen.entry((step, answer.status)).or_insert(0) += 1;
    }
}

/// Checks the number of members that an answer tells.
#[track_caller]
fn assert_members(answer: &Answer) {
    let members = answer.body["members"].as_u64();
    assert!(members.is_some_and(|members| members <= u64::from(MEMBERS_MAX)), "{:#}", answer.body);
}

/// Checks the audit log once every session is over: with `audit verify`, and record by record.
async fn on_record(harness: &Harness) {
    let started = Instant::now();
    loop {
        let proof = proof_of(&harness.ledger()).await;
        if proof.live == 0 {
            println!("{proof:?}");
            break;
        }
        assert!(started.elapsed() < ON_RECORD_MAX, "not over: {proof:?}");
    }
    let books = Books::read(&harness.ledger()).await;
    for user in 0..USERS {
        let most = books.most_at_once(&format!("group-{user}"));
        assert!(most <= i64::from(SCREENS), "{most} screens at one instant: group-{user}");
    }
    let screens: Vec<_> = books.stories().filter(|(_, story)| story.pool.starts_with("group-")).collect();
    let mut evicted_members = 0;
    let mut members_most = 0;
    for (id, _) in screens {
        let most = books.most_at_once(id);
        assert!(most <= i64::from(MEMBERS_MAX), "{most} members at one instant: {id}");
        members_most = members_most.max(most);
        let members = books.stories().filter(|(_, story)| story.pool == id);
        evicted_members += members.filter(|(_, story)| story.reason() == Some("evicted")).count();
    }
    assert_eq!(members_most, i64::from(MEMBERS_MAX), "no group was ever full");
    assert!(evicted_members > 0, "no member heard of an eviction");
}
