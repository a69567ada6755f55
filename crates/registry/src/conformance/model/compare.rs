//! Where two accounts of one step differ.

use std::fmt::Debug;

use seatkeeper_core::{Change, Denial, EndReason, Event, Span};

use super::shadow::Entry;

/// Nothing, or the first difference in words.
pub(super) type Checked = Result<(), String>;

/// Both are the same.
pub(super) fn same<T: PartialEq + Debug>(what: &str, backend: &T, rule: &T) -> Checked {
    if backend == rule {
        return Ok(());
    }
    Err(format!("{what}\n  backend: {backend:?}\n  rule:    {rule:?}"))
}

/// Both are the same, but for a wait that was counted from within `slack` of one another.
pub(super) fn same_denial(backend: Denial, rule: Denial, slack: Span) -> Checked {
    if let (Denial::Full { free_in: Some(one) }, Denial::Full { free_in: Some(other) }) = (backend, rule)
        && one.as_millis().abs_diff(other.as_millis()) <= slack.as_millis()
    {
        return Ok(());
    }
    same("denial", &backend, &rule)
}

/// The events are these, in this order. Ends that follow from one cause may come in any order.
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

/// Why a session ended, if the rule did not choose it before others.
fn cause((_, change): &Entry) -> Option<EndReason> {
    let Change::Ended { reason, .. } = change else { return None };
    match reason {
        EndReason::Expired | EndReason::Released | EndReason::Revoked | EndReason::EntitlementEnded => {
            Some(*reason)
        }
        EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded => None,
    }
}
