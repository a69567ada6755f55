//! A user has one session on a capacity, in the highest requested tier, however many requests race; and from
//! the first start to the last end, exactly one session is live at every instant.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::task::JoinSet;

use super::support::books::{Books, Story, proof_of};
use super::support::capacity::{self, Capacity, PATH, TENANT};
use super::support::dice::Dice;
use super::support::knobs;
use super::support::line::Line;
use super::support::scene::{patient, text};
use crate::harness::Client;

/// Racing requests of a round.
const AT_ONCE: usize = 8;

/// Concurrent rounds, each on its own capacity.
const LANES: u64 = 16;

/// Rounds on one capacity. Later rounds often find a session from an earlier round.
const ROUNDS_A_CAPACITY: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_racing_requests_the_highest_tier_wins_and_one_session_stands() {
    let (rounds, seed) = (knobs::race_rounds(), knobs::seed());
    let harness = patient(&[]);
    let client = capacity::client(&harness);
    let lanes: JoinSet<_> =
        (0..LANES).map(|lane| play(client.clone(), Dice::new(seed, lane), rounds.div_ceil(LANES))).collect();
    let played = lanes.join_all().await;
    let told: TierAnswer = played.iter().fold(TierAnswer::default(), |all, lane| all.and(&lane.told));
    println!("{told:?}");
    let TierAnswer { created, upgraded, existing, released, .. } = told;
    assert!([created, upgraded, existing, released].into_iter().all(|count| count > 0), "{told:?}");
    assert_eq!(created + upgraded + existing, told.rounds * AT_ONCE as u64);

    let proof = proof_of(&harness.ledger()).await;
    println!("{proof:?}");
    assert_eq!(proof.admissions, created + upgraded, "each was answered, and to one request");
    let books = Books::of_tenant(&harness.ledger(), TENANT).await;
    let mut of_pool: BTreeMap<&str, Vec<(&str, &Story)>> = BTreeMap::new();
    for (id, story) in books.stories() {
        of_pool.entry(&story.pool).or_default().push((id, story));
    }
    for lane in &played {
        for (capacity, stands) in &lane.capacities {
            let stories = of_pool.remove(capacity.pool().as_str()).expect("a capacity that is on record");
            without_gap_or_overlap(stories, stands.as_ref());
        }
    }
    assert!(of_pool.is_empty(), "on record, and not played: {of_pool:?}");
}

/// The live session of a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stands {
    session: String,
    tier: u8,
}

/// Counts of the answers in a lane.
#[derive(Clone, Copy, Debug, Default)]
struct TierAnswer {
    rounds: u64,
    created: u64,
    upgraded: u64,
    existing: u64,
    released: u64,
}

/// The result of a lane.
struct Played {
    told: TierAnswer,
    /// The played capacities, with the live session at the end or `None`.
    capacities: Vec<(Capacity, Option<Stands>)>,
}

impl TierAnswer {
    fn and(self, other: &Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            created: self.created + other.created,
            upgraded: self.upgraded + other.upgraded,
            existing: self.existing + other.existing,
            released: self.released + other.released,
        }
    }
}

async fn play(client: Client, mut dice: Dice, rounds: u64) -> Played {
    let mut lines = Vec::with_capacity(AT_ONCE);
    let mut watch = Line::to(&client).await;
    for _ in 0..AT_ONCE {
        lines.push(Line::to(&client).await);
    }
    let mut played = Played { told: TierAnswer::default(), capacities: Vec::new() };
    let (mut capacity, mut stands) = (Capacity::drawn(&mut dice), None);
    for round in 0..rounds {
        if round > 0 && round % ROUNDS_A_CAPACITY == 0 {
            played.capacities.push((capacity, stands.take()));
            capacity = Capacity::drawn(&mut dice);
        }
        // The highest tier of a round is random as well. Otherwise, nearly every round would contain a 3.
        let highest = 1 + dice.below(3);
        let tiers: Vec<u8> = (0..AT_ONCE).map(|_| (1 + dice.below(highest)) as u8).collect();
        stands = Some(race(&mut lines, &mut watch, capacity, &tiers, stands, &mut played.told).await);
        if dice.below(3) == 0 {
            release(&mut lines[0], stands.take()).await;
            played.told.released += 1;
        }
    }
    played.capacities.push((capacity, stands));
    played
}

/// Sends all requests of a round at once. Checks the answers against each other, against a search during the
/// race, and against a search after the race. Returns the live session.
async fn race(
    lines: &mut [Line],
    watch: &mut Line,
    capacity: Capacity,
    tiers: &[u8],
    before: Option<Stands>,
    told: &mut TierAnswer,
) -> Stands {
    let what = format!("PUT {PATH}");
    let asking = lines.iter_mut().zip(tiers).map(async |(line, &tier)| {
        let (status, body) = line.ask(&what, Some(&capacity.ask(tier))).await;
        (tier, status, body)
    });
    let (answers, seen) = tokio::join!(join_all(asking), found(watch, capacity));
    told.rounds += 1;
    let shown = || format!("{before:?}, then {answers:#?}, and {seen:?} meanwhile");

    // Every session of the round, by tier: the earlier session and the new sessions.
    let mut there: BTreeMap<u8, String> = before.iter().map(|was| (was.tier, was.session.clone())).collect();
    let first = before.as_ref().map_or(0, |was| was.tier);
    let mut created = 0;
    for (asked, status, body) in &answers {
        let given = stands_of(body);
        assert!(given.tier >= *asked && body["isActive"] == true, "{}", shown());
        match (status, body["status"].as_str()) {
            (201, Some("created")) => created += 1,
            (201, Some("upgraded")) => told.upgraded += 1,
            (200, Some("existing")) => {
                told.existing += 1;
                continue;
            }
            _ => panic!("{}", shown()),
        }
        assert!(given.tier == *asked && given.tier > first, "{}", shown());
        assert_eq!(there.insert(given.tier, given.session), None, "two of one tier began: {}", shown());
    }
    assert_eq!(created, u64::from(before.is_none()), "{}", shown());
    told.created += created;
    let known = |given: &Stands| there.get(&given.tier) == Some(&given.session);
    assert!(answers.iter().all(|(_, _, body)| known(&stands_of(body))), "{}", shown());

    // The search never finds two sessions, and finds one whenever the round began with one.
    let one = seen.len() == 1 || (seen.is_empty() && before.is_none());
    assert!(one && seen.iter().all(known), "{}", shown());

    let (highest, session) = there.pop_last().expect("a session");
    assert_eq!(Some(highest), tiers.iter().copied().chain([first]).max(), "{}", shown());
    let stands = Stands { session, tier: highest };
    assert_eq!(found(watch, capacity).await, std::slice::from_ref(&stands), "{}", shown());
    stands
}

async fn found(line: &mut Line, capacity: Capacity) -> Vec<Stands> {
    let (status, page) = line.ask(&format!("GET {}", capacity.search()), None).await;
    assert_eq!(status, 200, "{page:#}");
    page["items"].as_array().expect("a list").iter().map(stands_of).collect()
}

fn stands_of(body: &Value) -> Stands {
    let tier = body["sessionKind"].as_u64().and_then(|tier| u8::try_from(tier).ok());
    Stands { session: text(&body["sessionId"]), tier: tier.unwrap_or_else(|| panic!("no tier: {body:#}")) }
}

async fn release(line: &mut Line, stands: Option<Stands>) {
    let session = stands.expect("a session").session;
    assert_eq!(line.ask(&format!("DELETE {PATH}/{session}"), None).await.0, 204);
}

/// Checks the audit log of one capacity: each session has one end, except the live session. An upgrade's end
/// and the following start are one step, with adjacent sequence numbers and the same time.
fn without_gap_or_overlap(mut stories: Vec<(&str, &Story)>, stands: Option<&Stands>) {
    stories.sort_unstable_by_key(|(_, story)| story.began_seq);
    for (at, (_, story)) in stories.iter().enumerate() {
        // The pool's records are alternately starts and ends.
        assert_eq!(story.began_seq, 2 * at as u64 + 1, "{stories:#?}");
        let Some(end) = &story.end else {
            assert_eq!(at + 1, stories.len(), "{stories:#?}");
            continue;
        };
        assert_eq!(end.seq, story.began_seq + 1, "{stories:#?}");
        let next = stories.get(at + 1).map(|(_, next)| next);
        match (end.reason.as_str(), next) {
            ("upgraded", Some(next)) => {
                assert!(next.began == end.at && next.tier > story.tier, "{stories:#?}");
            }
            ("released", Some(next)) => assert!(next.began >= end.at, "{stories:#?}"),
            ("released", None) => {}
            _ => panic!("{stories:#?}"),
        }
    }
    let live = stories.last().filter(|(_, story)| story.end.is_none());
    let live = live.map(|(id, story)| Stands { session: (*id).to_owned(), tier: story.tier });
    assert_eq!(live.as_ref(), stands, "{stories:#?}");
}
