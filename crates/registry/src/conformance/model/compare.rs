//! Comparison of a step on the backend with the step on the rule.

use std::fmt::Debug;

use seatkeeper_core::{Change, Denial, EndReason, Event, Span};

use super::shadow::Entry;

/// `Ok`, or a description of the first difference.
pub(super) type Checked = Result<(), String>;

/// Checks that the backend's value equals the rule's value.
pub(super) fn same<T: PartialEq + Debug>(what: &str, backend: &T, rule: &T) -> Checked {
    if backend == rule {
        return Ok(());
    }
    Err(format!("{what}\n  backend: {backend:?}\n  rule:    {rule:?}"))
}

/// Checks that two denials are equal, except for a difference of up to `slack` in the wait.
pub(super) fn same_denial(backend: Denial, rule: Denial, slack: Span) -> Checked {
    if let (Denial::Full { free_in: Some(one) }, Denial::Full { free_in: Some(other) }) = (backend, rule)
        && one.as_millis().abs_diff(other.as_millis()) <= slack.as_millis()
    {
        return Ok(());
    }
    same("denial", &backend, &rule)
}

/// Checks the recorded events against `expected`, in order. Ends of one cause may come in any order.
pub(super) fn same_record(events: &[Event], expected: Vec<Entry>) -> Checked {
    let recorded = events.iter().map(|event| (event.origin.clone(), event.change.clone())).collect();
    same("journal", &in_order(recorded), &in_order(expected))
}

fn in_order(mut entries: Vec<Entry>) -> Vec<Entry> {
    for together in entries.chunk_by_mut(|one, other| cause(one).is_some() && cause(one) == cause(other)) {
        together.sort_by_key(|(_, change)| match change {
            Change::Ended { session, .. } => Some(*session),
            Change::Admitted { .. } | Change::Denied(_) => None,
        });
    }
    entries
}

/// Returns the cause of an end, except for ends in an order chosen by the rule.
fn cause((_, change): &Entry) -> Option<EndReason> {
    let Change::Ended { reason, .. } = change else { return None };
    match reason {
        EndReason::Expired
        | EndReason::Released
        | EndReason::Revoked
        | EndReason::EntitlementEnded
        | EndReason::GroupContent
        | EndReason::Moved => Some(*reason),
        EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded => None,
    }
}
