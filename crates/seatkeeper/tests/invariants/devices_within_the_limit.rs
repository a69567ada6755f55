//! A subscriber never has more devices than the plan's limit, whatever the devices do and whenever the plan
//! changes; and every eviction takes the stalest device.

use std::time::{Duration, Instant};

use http::Method;
use seatkeeper_ledger::Location;
use seatkeeper_ledger::verify::Proof;
use seatkeeper_load::{FixedRequest, Target};
use seatkeeper_testbed::storm::{Door, Operator, Pool, Statistics, Storm};
use serde_json::{Value, json};

use super::support::books::{Books, Story, proof_of};
use super::support::knobs;
use super::support::scene::patient;
use super::support::storm::{no_other_errors, nodes, raging};
use super::support::subscriber::Subscriber;
use crate::harness::{Client, Harness};

/// Short, so that sessions of silent devices expire while the storm goes on.
const TTL_SECONDS: u64 = 2;

const DEVICES: &str = "/api/v1/devices/sessions";

/// Time limit for an eviction of several sessions, on a machine that is busy with other work.
const ROOM_MADE_MAX: Duration = Duration::from_secs(60);

/// Time limit until the ledger has committed every end, on a busy machine.
const ON_RECORD_MAX: Duration = Duration::from_secs(60);

/// Concurrent rounds.
const LANES: usize = 4;

/// The predefined plans of every tenant, with their limits. They evict.
const BUILT_IN: [(&str, u32); 3] = [("basic", 1), ("standard", 2), ("premium", 4)];

/// The policy of a subscriber's plans when full, and the use of heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Every plan evicts. No session is renewed, so the last heartbeat of a session is its start.
    SilentEvicting,
    /// Every plan evicts, and devices renew their sessions.
    Evicting,
    /// The only plan denies, and a session is evicted only if the claim named it.
    Denying,
    /// The plan switches between evicting and denying.
    Mixed,
}

const KINDS: [Kind; 4] = [Kind::SilentEvicting, Kind::Evicting, Kind::Denying, Kind::Mixed];

/// Subscribers of each kind and limit.
const EACH: usize = 2;

/// A subscriber in the storm.
#[derive(Debug)]
struct Player {
    kind: Kind,
    /// The highest limit of the subscriber's plans.
    seats: u32,
    subscriber: Subscriber,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_never_brings_a_subscriber_above_its_limit_and_evicts_the_stalest() {
    let (rounds, seed) = (knobs::storm_rounds(), knobs::seed());
    let harness = patient(&[("DEVICES_TTL_SECONDS", &TTL_SECONDS.to_string())]);
    let players = players(&harness).await;
    let storm = Storm {
        nodes: nodes(&harness, None),
        pools: players.iter().map(|player| player.pool(&harness)).collect(),
        rounds,
        lanes: LANES,
        seed,
    };
    several_make_room(&harness, &players).await;
    let verdict = raging(storm).await;

    everything_happened(&verdict.statistics, rounds);
    on_record(&harness, &players, &verdict.statistics).await;
}

/// Makes a newcomer evict several sessions, including the named session. A short storm may never get to this
/// case.
async fn several_make_room(harness: &Harness, players: &[Player]) {
    let is_fit = |player: &&Player| player.kind == Kind::Evicting && player.seats > 2;
    let player = players.iter().find(is_fit).expect("one whose plan evicts, with room for several");
    // One node for both clients, because a node applies its own change of a plan at once.
    let user = harness.client(&player.subscriber.user).at_one_node();
    let admin = Client::new(user.url(), harness.admin().token);
    let plan = player.subscriber.plan_path();
    let started = Instant::now();
    loop {
        let mut named = Value::Null;
        for number in 0..player.seats {
            let ask = json!({ "device_id": format!("early-{number}"), "device_type": "tv" });
            named = user.post(DEVICES, ask).await.expect(201)["session_id"].clone();
        }
        admin.patch(&plan, Some(json!({ "device_limit": 1 }))).await.expect(200);
        let late = json!({
            "device_id": "late", "device_type": "tv", "device_name": named, "replace_session_id": named,
        });
        let evicted = user.post(DEVICES, late).await.expect(201)["evicted_session_ids"].clone();
        admin.patch(&plan, Some(json!({ "device_limit": player.seats }))).await.expect(200);
        user.delete(DEVICES).await.expect(204);
        if evicted.as_array().is_some_and(|evicted| evicted.len() > 1) {
            return;
        }
        // The short TTL may have expired some of the sessions: try again.
        assert!(started.elapsed() < ROOM_MADE_MAX, "never were there several: {evicted}");
    }
}

async fn players(harness: &Harness) -> Vec<Player> {
    let (admin, mut players) = (harness.admin(), Vec::new());
    for number in 0..EACH {
        for seats in 1..=4 {
            for kind in KINDS {
                let user = format!("storm-{kind:?}-{seats}-{number}").to_lowercase();
                let when_full = if kind == Kind::Denying { "deny" } else { "evict" };
                let subscriber = Subscriber::make(&admin, &user, seats, when_full).await;
                players.push(Player { kind, seats, subscriber });
            }
        }
    }
    players
}

impl Player {
    fn pool(&self, harness: &Harness) -> Pool {
        let subscriber = harness.client(&self.subscriber.user);
        let subscriber = Target::new(harness.url(), Some(&subscriber.token)).expect("a target");
        let admin = Target::new(harness.url(), Some(&harness.admin().token)).expect("a target");
        Pool {
            door: Door::Devices { subscriber, renew: self.kind != Kind::SilentEvicting },
            seats: self.seats,
            ttl: Duration::from_secs(TTL_SECONDS),
            operator: Some(Operator { target: admin, changes: self.changes(), settled: self.settled() }),
        }
    }

    fn changes(&self) -> Vec<FixedRequest> {
        let (plan, subscription) = (self.subscriber.plan_path(), self.subscriber.subscription_path());
        let limits = (1..=self.seats).map(|limit| json!({ "device_limit": limit }));
        let mut changes: Vec<_> = limits.map(|change| patch(&plan, &change)).collect();
        if self.kind != Kind::Denying {
            let others = BUILT_IN.iter().filter(|(_, limit)| *limit <= self.seats);
            changes.extend(others.map(|(name, _)| patch(&subscription, &json!({ "plan": name }))));
            let own = patch(&subscription, &json!({ "plan": self.subscriber.plan }));
            changes.extend([own.clone(), own]);
        }
        if self.kind == Kind::Mixed {
            changes.extend(["evict", "deny"].map(|when| patch(&plan, &json!({ "when_full": when }))));
        }
        changes
    }

    fn settled(&self) -> Vec<FixedRequest> {
        let plan = json!({ "device_limit": self.seats, "when_full": "deny" });
        let subscription = json!({ "plan": self.subscriber.plan });
        vec![
            patch(&self.subscriber.plan_path(), &plan),
            patch(&self.subscriber.subscription_path(), &subscription),
        ]
    }
}

fn patch(path: &str, change: &Value) -> FixedRequest {
    let body = change.to_string();
    FixedRequest { method: Method::PATCH, path: path.to_owned(), body, status_expected: 200 }
}

/// Fails if any kind of event never happened, because the storm has then tested too little.
fn everything_happened(seen: &Statistics, rounds: u32) {
    assert_eq!(seen.rounds, u64::from(rounds));
    assert!(no_other_errors(&seen.errors), "{:?}", seen.errors);
    let Statistics { acquired, resumed, evicted, filled, denied, renewed, .. } = seen;
    let Statistics { over, released, changed, crashed, unheard, torn, .. } = seen;
    let claims = [acquired, resumed, evicted, filled, denied, renewed];
    let others = [over, released, changed, crashed, unheard, torn];
    assert!(claims.into_iter().chain(others).all(|&count| count > 0), "{seen:?}");
}

/// Checks the audit log twice: with `audit verify`, and record by record.
async fn on_record(harness: &Harness, players: &[Player], seen: &Statistics) {
    let proof = proof_once_over(&harness.ledger()).await;
    println!("{proof:?}");
    assert!(proof.admissions >= seen.acquired, "answered admissions are missing: {proof:?}");

    let books = Books::read(&harness.ledger()).await;
    assert_eq!(books.stories().count() as u64, proof.admissions);
    let mut evicting = Evicting::default();
    for player in players {
        let pool = &player.subscriber.user;
        let most = books.most_at_once(pool);
        assert!(most <= i64::from(player.seats), "{most} devices at one instant: {player:?}");
        // At the end, the storm sets every plan to `deny`, and one newcomer per subscriber is denied.
        let may_deny = player.kind == Kind::Denying || player.kind == Kind::Mixed;
        assert!(may_deny || books.denials(pool) == 1, "denied by a plan that evicts: {player:?}");
        evicting.add(&the_stalest_made_room(&books, player));
    }
    println!("{evicting:?}");
    let Evicting { for_one, for_several, named } = evicting;
    assert!([for_one, for_several, named].iter().all(|&count| count > 0), "{evicting:?}");
}

/// Returns the proof of the audit log once no session is live. Ends of devices are answered before their
/// commit.
async fn proof_once_over(ledger: &Location) -> Proof {
    let started = Instant::now();
    loop {
        let proof = proof_of(ledger).await;
        if proof.live == 0 {
            return proof;
        }
        assert!(started.elapsed() < ON_RECORD_MAX, "not over: {proof:?}");
    }
}

/// Counts of admissions that evicted.
#[derive(Clone, Copy, Debug, Default)]
struct Evicting {
    /// Admissions that evicted exactly one session.
    for_one: u64,
    /// Admissions that evicted several sessions, after a lower limit.
    for_several: u64,
    /// Of `for_several`, the admissions that named an evicted session.
    named: u64,
}

impl Evicting {
    fn add(&mut self, other: &Self) {
        self.for_one += other.for_one;
        self.for_several += other.for_several;
        self.named += other.named;
    }
}

/// Replays a pool and checks each admission: the pool stays within its limit; an admission evicts no more
/// sessions than the limit requires; and no evicted session ranks after a session that stayed, unless the
/// claim named the evicted session.
///
/// An evicted session's rank is on its record. The rank of a session that stayed comes from the record of its
/// own end, which gives the latest possible last heartbeat. Without renewals, the last heartbeat is the start
/// and the comparison is exact. With renewals, the check on the clients' side is stricter, because a client
/// knows its earlier renewals.
fn the_stalest_made_room(books: &Books, player: &Player) -> Evicting {
    let (mut live, mut victims): (Vec<Session<'_>>, Vec<Session<'_>>) = (Vec::new(), Vec::new());
    let mut evicting = Evicting::default();
    for step in steps(books, &player.subscriber.user) {
        match step {
            Step::Ended(session) => {
                live.retain(|other| other.id != session.id);
                if session.story.reason() == Some("evicted") {
                    victims.push(session);
                }
            }
            Step::Began(newcomer) => {
                let limit = newcomer.story.limit as usize;
                assert!(live.len() < limit, "above its limit: {newcomer:?} beside {live:?}");
                let enough = victims.is_empty() || live.len() + 1 == limit;
                assert!(enough, "more than it took: {victims:?} for {newcomer:?} beside {live:?}");
                let named = newcomer.story.device_name.as_deref();
                for victim in victims.iter().filter(|victim| Some(victim.id) != named) {
                    let staler = live.iter().find(|stayed| stayed.rank() < victim.rank());
                    assert!(staler.is_none(), "{victim:?} was evicted, and {staler:?} stayed");
                }
                evicting.for_one += u64::from(victims.len() == 1);
                evicting.for_several += u64::from(victims.len() > 1);
                evicting.named += u64::from(victims.iter().any(|victim| Some(victim.id) == named));
                victims.clear();
                live.push(newcomer);
            }
        }
    }
    assert!(live.is_empty() && victims.is_empty(), "not over: {live:?}, {victims:?}");
    if player.kind == Kind::SilentEvicting {
        let silent = |story: &Story| story.end.as_ref().is_some_and(|end| end.last_heartbeat == story.began);
        let mut stories = books.stories().filter(|(_, story)| story.pool == player.subscriber.user);
        assert!(stories.all(|(_, story)| silent(story)), "renewed: {player:?}");
    }
    evicting
}

#[derive(Clone, Copy, Debug)]
struct Session<'b> {
    id: &'b str,
    story: &'b Story,
}

enum Step<'b> {
    Began(Session<'b>),
    Ended(Session<'b>),
}

impl Session<'_> {
    /// Returns the position in the order of eviction, as of the session's end.
    fn rank(&self) -> (u64, u64, &str) {
        let last_heartbeat = self.story.end.as_ref().map_or(u64::MAX, |end| end.last_heartbeat);
        (last_heartbeat, self.story.began, self.id)
    }
}

/// Returns the starts and the ends in a pool, in the order of their records.
fn steps<'b>(books: &'b Books, pool: &str) -> Vec<Step<'b>> {
    let stories = books.stories().filter(|(_, story)| story.pool == pool);
    let mut steps = Vec::new();
    for (id, story) in stories {
        let session = Session { id, story };
        steps.push((story.began_seq, Step::Began(session)));
        steps.extend(story.end.as_ref().map(|end| (end.seq, Step::Ended(session))));
    }
    steps.sort_by_key(|(seq, _)| *seq);
    steps.into_iter().map(|(_, step)| step).collect()
}
