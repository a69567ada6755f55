//! A bucket is rebuilt only if the ledger and the majority of nodes agree.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};
use seatkeeper_ledger::nodes::NodeRow;
use seatkeeper_registry::{Condition, Identity, State};
use uuid::Uuid;

use super::{
    BucketView, DEMAND_LASTS, RebuildQueue, RebuildTask, cut, is_in_service, is_superseded, reached,
};

const EPOCH: u64 = 7;

fn bucket() -> Bucket {
    Bucket::new(3).expect("a bucket")
}

fn server(name: &str) -> Option<Identity> {
    Some(Identity(name.into()))
}

fn row(mode: BucketMode) -> BucketRow {
    BucketRow {
        bucket: bucket(),
        epoch: EPOCH,
        mode,
        identity: Some("redis-1".to_owned()),
        was_raised_here: true,
    }
}

fn condition(server: Option<Identity>, state: State) -> Condition {
    Condition { server, state, ..Condition::unreachable(bucket()) }
}

fn serving(epoch: u64, filled_on: &str, is_now: &str) -> Condition {
    let state = State::Serving { epoch, identity: server(filled_on), is_leased: true };
    condition(server(is_now), state)
}

fn seen<'a>(row: &'a BucketRow, condition: &'a Condition) -> BucketView<'a> {
    BucketView {
        row,
        condition,
        standby: None,
        is_cut: false,
        is_back: false,
        is_lost: false,
        is_suspect: false,
        is_tripped: false,
    }
}

fn need_of(row: &BucketRow, condition: &Condition) -> Option<RebuildTask> {
    seen(row, condition).need(BucketMode::Deny)
}

fn to(mode: BucketMode, identity: Option<Identity>) -> Option<RebuildTask> {
    Some(RebuildTask { bucket: bucket(), epoch: EPOCH, mode, identity, is_suspect: false })
}

#[test]
fn a_bucket_that_is_as_the_ledger_says_needs_nothing() {
    assert_eq!(need_of(&row(BucketMode::Registry), &serving(EPOCH, "redis-1", "redis-1")), None);
}

#[test]
fn a_bucket_is_rebuilt_on_the_server_that_has_it_now() {
    let row = row(BucketMode::Registry);
    let nothing = condition(server("redis-2"), State::Missing);
    let half = Condition { state: State::Rebuilding { epoch: EPOCH }, ..nothing.clone() };
    let older = serving(EPOCH - 1, "redis-1", "redis-1");
    let restarted = serving(EPOCH, "redis-1", "redis-2");
    let filled_elsewhere = serving(EPOCH, "redis-2", "redis-2");
    for condition in [nothing, half, older, restarted, filled_elsewhere] {
        let expected = to(BucketMode::Registry, condition.server.clone());
        assert_eq!(need_of(&row, &condition), expected, "{condition:?}");
    }
}

#[test]
fn a_node_with_an_open_breaker_leaves_the_rebuild_to_others_or_to_the_fallback() {
    let row = row(BucketMode::Registry);
    let empty = condition(server("redis-2"), State::Missing);
    let tripped = BucketView { is_tripped: true, ..seen(&row, &empty) };
    assert_eq!(tripped.need(BucketMode::Deny), None);
    let cut = BucketView { is_cut: true, ..tripped };
    assert_eq!(cut.need(BucketMode::Deny), None, "it has just come back");
    let gone = Condition::unreachable(bucket());
    let cut = BucketView { condition: &gone, ..cut };
    assert_eq!(cut.need(BucketMode::Deny), to(BucketMode::Deny, server("redis-1")));
}

#[test]
fn nodes_that_are_left_with_an_old_primary_leave_it_once_they_are_most() {
    let row = BucketRow { identity: Some("redis-2".to_owned()), ..row(BucketMode::Registry) };
    let old_primary = serving(EPOCH - 1, "redis-1", "redis-1");
    let cut = BucketView { is_cut: true, ..seen(&row, &old_primary) };
    assert_eq!(cut.need(BucketMode::Deny), to(BucketMode::Deny, server("redis-2")));
}

#[test]
fn a_bucket_that_no_node_looked_after_is_rebuilt_where_it_is() {
    let row = row(BucketMode::Registry);
    let state = State::Serving { epoch: EPOCH, identity: server("redis-1"), is_leased: false };
    let unattended = condition(server("redis-1"), state);
    assert_eq!(need_of(&row, &unattended), to(BucketMode::Registry, server("redis-1")));
    assert!(!is_in_service(&row, &unattended, None));
}

#[test]
fn a_bucket_that_other_nodes_serve_by_a_newer_ledger_is_left_to_them() {
    let row = row(BucketMode::Registry);
    let newer = serving(EPOCH + 1, "redis-1", "redis-1");
    assert_eq!(need_of(&row, &newer), None);
    assert!(!is_in_service(&row, &newer, None));
    let state = State::Serving { epoch: EPOCH + 1, identity: server("redis-1"), is_leased: false };
    let unattended = Condition { state, ..newer };
    assert_eq!(need_of(&row, &unattended), to(BucketMode::Registry, server("redis-1")));
}

#[test]
fn a_ledger_that_was_promoted_or_restored_raises_every_bucket() {
    for mode in [BucketMode::Registry, BucketMode::Ledger] {
        let row = BucketRow { was_raised_here: false, ..row(mode) };
        for redis in [serving(EPOCH, "redis-1", "redis-1"), serving(EPOCH + 1, "redis-1", "redis-1")] {
            let standby_state = State::Serving { epoch: EPOCH, identity: None, is_leased: true };
            let standby = condition(None, standby_state);
            let seen = BucketView { standby: Some(&standby), ..seen(&row, &redis) };
            let need = seen.need(BucketMode::Deny);
            assert_eq!(need, to(mode, server("redis-1")), "{redis:?}");
            assert!(need.is_some_and(|need| need.is_left(&row, &redis, Some(&standby))));
        }
    }
}

#[test]
fn an_old_primary_that_lives_on_takes_nothing_back() {
    let row = BucketRow { identity: Some("redis-2".to_owned()), ..row(BucketMode::Registry) };
    let old_primary = serving(EPOCH - 1, "redis-1", "redis-1");
    assert!(is_superseded(&row, &old_primary));
    assert_eq!(need_of(&row, &old_primary), None);
    // The bucket left this server in a fallback, and returned to another server.
    let state = State::Rebuilding { epoch: EPOCH - 1 };
    let left_in_a_fallback = condition(server("redis-1"), state);
    assert!(is_superseded(&row, &left_in_a_fallback));
    assert_eq!(need_of(&row, &left_in_a_fallback), None);
    let demoted_and_promoted = serving(EPOCH, "redis-2", "redis-1");
    assert!(!is_superseded(&row, &demoted_and_promoted));
    assert_eq!(need_of(&row, &demoted_and_promoted), to(BucketMode::Registry, server("redis-1")));
}

#[test]
fn a_redis_from_before_a_sole_user_of_the_ledger_is_no_old_primary() {
    let row = BucketRow { identity: Some("alone/process".to_owned()), ..row(BucketMode::Registry) };
    let from_before = serving(EPOCH - 1, "redis-1", "redis-1");
    assert!(!is_superseded(&row, &from_before));
    assert_eq!(need_of(&row, &from_before), to(BucketMode::Registry, server("redis-1")));
    let gone = Condition::unreachable(bucket());
    let cut = BucketView { is_cut: true, ..seen(&row, &gone) };
    assert_eq!(cut.need(BucketMode::Deny), to(BucketMode::Deny, None));
}

#[test]
fn a_suspect_is_rebuilt_though_it_looks_well() {
    let (row, condition) = (row(BucketMode::Registry), serving(EPOCH, "redis-1", "redis-1"));
    let suspect = BucketView { is_suspect: true, ..seen(&row, &condition) };
    let need = suspect.need(BucketMode::Deny).expect("a need");
    assert_eq!((need.mode, &need.identity), (BucketMode::Registry, &server("redis-1")));
    assert!(need.is_left(&row, &condition, None), "that it looks well tells nothing");
}

#[test]
fn a_need_that_somebody_else_has_seen_to_is_none_any_more() {
    let half = condition(server("redis-1"), State::Rebuilding { epoch: EPOCH });
    let need = need_of(&row(BucketMode::Registry), &half).expect("a need");
    assert!(need.is_left(&row(BucketMode::Registry), &half, None));
    assert!(!need.is_left(&row(BucketMode::Registry), &serving(EPOCH, "redis-1", "redis-1"), None));
    let raised = BucketRow { epoch: EPOCH + 1, ..row(BucketMode::Registry) };
    assert!(!need.is_left(&raised, &half, None));
}

#[test]
fn the_mode_changes_when_most_nodes_are_cut_off_and_not_when_one_is() {
    let row = row(BucketMode::Registry);
    let gone = Condition::unreachable(bucket());
    assert_eq!(need_of(&row, &gone), None, "one node alone changes nothing");
    let cut = BucketView { is_cut: true, ..seen(&row, &gone) };
    assert_eq!(cut.need(BucketMode::Deny), to(BucketMode::Deny, server("redis-1")));
}

#[test]
fn the_way_back_is_taken_by_a_node_that_sees_it_and_once_most_do() {
    let row = row(BucketMode::Deny);
    let well = serving(EPOCH - 1, "redis-1", "redis-1");
    assert_eq!(need_of(&row, &well), None, "most do not see it yet");
    let back = |condition| BucketView { is_back: true, ..seen(&row, condition) };
    assert_eq!(back(&well).need(BucketMode::Deny), to(BucketMode::Registry, server("redis-1")));
    let gone = Condition::unreachable(bucket());
    assert_eq!(back(&gone).need(BucketMode::Deny), None);
    let tripped = BucketView { is_tripped: true, ..back(&well) };
    assert_eq!(tripped.need(BucketMode::Deny), None, "this node did not vote for the return");
}

#[test]
fn an_old_primary_serves_again_only_where_most_nodes_were_left_with_it_for_long() {
    let row = row(BucketMode::Deny);
    let old_primary = serving(EPOCH - 2, "redis-0", "redis-0");
    let back = BucketView { is_back: true, ..seen(&row, &old_primary) };
    assert_eq!(back.need(BucketMode::Deny), None, "most are elsewhere");
    let lost = BucketView { is_lost: true, ..seen(&row, &old_primary) };
    assert_eq!(lost.need(BucketMode::Deny), to(BucketMode::Registry, server("redis-0")));
}

#[test]
fn what_takes_the_place_of_a_registry_is_filled_for_the_epoch_before_it_serves() {
    let row = row(BucketMode::Ledger);
    let gone = Condition::unreachable(bucket());
    let standby = |state| condition(None, state);
    let filled = standby(State::Serving { epoch: EPOCH, identity: None, is_leased: true });
    let need = |standby: &Condition, is_suspect| {
        let seen = BucketView { standby: Some(standby), is_suspect, ..seen(&row, &gone) };
        seen.need(BucketMode::Ledger)
    };
    assert_eq!(need(&filled, false), None);
    assert_eq!(need(&gone, false), None, "the ledger is out of reach as well");
    let half = standby(State::Rebuilding { epoch: EPOCH });
    let again = to(BucketMode::Ledger, server("redis-1"));
    let older = State::Serving { epoch: EPOCH - 1, identity: None, is_leased: true };
    for state in [half.state.clone(), State::Missing, older] {
        assert_eq!(need(&standby(state), false), again);
    }
    let again = again.expect("a need");
    assert!(again.is_left(&row, &gone, Some(&half)));
    assert!(!again.is_left(&row, &gone, Some(&filled)));
    let suspect = need(&filled, true).expect("it has lost a session");
    assert!(suspect.is_left(&row, &gone, Some(&filled)));
}

#[test]
fn half_of_the_nodes_are_no_majority() {
    let node = |unreachable| NodeRow {
        id: Uuid::new_v4(),
        name: "node".to_owned(),
        unreachable,
        named: BTreeSet::new(),
    };
    let (well, cut_off) = (BucketSet::default(), BucketSet::ALL);
    for (nodes, is_cut, is_reached) in [
        (vec![], false, false),
        (vec![well], false, true),
        (vec![cut_off], true, false),
        (vec![well, cut_off], false, false),
        (vec![well, well, cut_off], false, true),
        (vec![well, cut_off, cut_off], true, false),
    ] {
        let nodes: Vec<_> = nodes.into_iter().map(node).collect();
        let nodes: Vec<_> = nodes.iter().collect();
        assert_eq!(cut(&nodes).contains(bucket()), is_cut, "{nodes:?}");
        assert_eq!(reached(&nodes).contains(bucket()), is_reached, "{nodes:?}");
    }
}

#[test]
fn a_return_is_given_up_only_for_another_mode_that_several_probes_demand_for_a_while() {
    let (queue, start) = (RebuildQueue::default(), Instant::now());
    let task = |mode| to(mode, None).expect("a task");
    let is_given_up = |now| queue.demands_other_mode(bucket(), BucketMode::Registry, now);
    let probes = |mode, times: &[Instant]| times.iter().for_each(|&at| queue.set(vec![task(mode)], at));
    let (middle, end) = (start + DEMAND_LASTS / 2, start + DEMAND_LASTS);

    probes(BucketMode::Ledger, &[start, middle]);
    assert!(!is_given_up(end), "two probes");
    probes(BucketMode::Ledger, &[middle]);
    assert!(!is_given_up(end - Duration::from_millis(1)));
    queue.take();
    assert!(is_given_up(end), "a list that was taken was demanded as well");

    queue.forget_demands();
    assert!(!is_given_up(end));
    probes(BucketMode::Ledger, &[end, end, end]);
    assert!(!is_given_up(end), "the demand is new");
    queue.set(Vec::new(), end);
    probes(BucketMode::Ledger, &[end + DEMAND_LASTS]);
    assert!(!is_given_up(end + DEMAND_LASTS), "a probe in between demanded nothing");
    probes(BucketMode::Registry, &[start, middle, end]);
    assert!(!is_given_up(end), "the same mode is demanded");
}

#[test]
fn a_node_with_an_open_breaker_fills_no_standby_during_a_return() {
    let (row, well) = (row(BucketMode::Ledger), serving(EPOCH - 1, "redis-1", "redis-1"));
    let standby_state = State::Serving { epoch: EPOCH - 1, identity: None, is_leased: true };
    let standby = condition(None, standby_state);
    let tripped = BucketView { standby: Some(&standby), is_tripped: true, ..seen(&row, &well) };
    let refill = to(BucketMode::Ledger, server("redis-1"));
    assert_eq!(tripped.need(BucketMode::Deny), refill);
    assert_eq!(BucketView { is_back: true, ..tripped }.need(BucketMode::Deny), None, "the voters return");
}
