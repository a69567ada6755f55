//! Tests of the throttling of denial records.

use super::{DENIAL_WINDOW, DENIALS_RECORDED_PER_WINDOW_MAX, DenialFold, Folded};
use crate::{Denial, Denied, Holder, RegistryTime, Span};

const START: RegistryTime = RegistryTime::from_millis(5_000);
const FULL: Denial = Denial::Full { free_in: None };

fn one(holder: &str, why: Denial) -> Denied {
    Denied { holder: holder.into(), why, count: 1, folded: false }
}

fn counted(holder: &str, count: u64) -> Denied {
    Denied { holder: holder.into(), why: FULL, count, folded: true }
}

fn note(fold: &mut DenialFold, holder: &str, now: RegistryTime) -> Folded {
    fold.note(holder.into(), FULL, now)
}

/// A fold at the limit of recorded denials for its window.
fn all_recorded() -> DenialFold {
    let (mut fold, _) = DenialFold::start("ann".into(), FULL, START);
    for _ in 1..DENIALS_RECORDED_PER_WINDOW_MAX {
        note(&mut fold, "ann", START);
    }
    fold
}

#[test]
fn the_first_denials_of_a_window_are_recorded_one_by_one() {
    let (mut fold, first) = DenialFold::start("ann".into(), Denial::EntitlementClosed, START);
    assert_eq!(first, one("ann", Denial::EntitlementClosed));
    for n in 1..DENIALS_RECORDED_PER_WINDOW_MAX {
        let holder = format!("holder {n}");
        let this = Some(one(&holder, FULL));
        assert_eq!(note(&mut fold, &holder, START), Folded { earlier: None, this });
        assert_eq!(fold.due(), None);
    }
    assert_eq!(note(&mut fold, "one too many", START), Folded::default());
}

#[test]
fn denials_past_the_bound_are_counted_into_one_record_a_window() {
    let mut fold = all_recorded();
    for holder in ["bob", "cid", "dan"] {
        assert_eq!(note(&mut fold, holder, START), Folded::default());
    }
    let over = START + DENIAL_WINDOW;
    assert_eq!(fold.due(), Some(over));
    assert_eq!(fold.flush(over - Span::from_millis(1)), None);
    assert_eq!(fold.flush(over), Some(counted("dan", 3)));
    assert_eq!((fold.flush(over), fold.due()), (None, None));
}

#[test]
fn the_next_window_records_again_and_first_what_was_counted() {
    let mut fold = all_recorded();
    note(&mut fold, "bob", START);
    let next = START + DENIAL_WINDOW;
    let expected = Folded { earlier: Some(counted("bob", 1)), this: Some(one("cid", FULL)) };
    assert_eq!(note(&mut fold, "cid", next), expected);
    assert!(!fold.is_spent(next));
    for _ in 1..DENIALS_RECORDED_PER_WINDOW_MAX {
        assert!(note(&mut fold, "ann", next).this.is_some());
    }
    assert_eq!(note(&mut fold, "ann", next), Folded::default());
    assert_eq!(fold.due(), Some(next + DENIAL_WINDOW));
}

#[test]
fn a_window_lasts_from_its_first_denial_on() {
    let mut fold = all_recorded();
    let late = START + DENIAL_WINDOW - Span::from_millis(1);
    assert_eq!(note(&mut fold, "bob", late), Folded::default());
    assert_eq!(fold.flush(START + DENIAL_WINDOW), Some(counted("bob", 1)));
}

#[test]
fn a_fold_is_spent_once_its_window_is_over_and_all_is_on_record() {
    let over = START + DENIAL_WINDOW;
    let mut fold = all_recorded();
    assert!(!fold.is_spent(over - Span::from_millis(1)));
    assert!(fold.is_spent(over));
    note(&mut fold, "bob", START);
    assert!(!fold.is_spent(over));
    fold.flush(over);
    assert!(fold.is_spent(over));
}

#[test]
fn the_bounds_are_the_documented_ones() {
    assert_eq!((DENIALS_RECORDED_PER_WINDOW_MAX, DENIAL_WINDOW), (10, Span::from_secs(60)));
    assert_eq!(one("ann", FULL).holder, Holder::from("ann"));
}
