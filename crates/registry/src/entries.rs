//! The events of a bucket's journal, up to a missing or undecodable entry.

use crate::contract::{JournalEntry, Receipt};

/// The events of consecutive entries.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) events: Vec<JournalEntry>,
    /// The unreadable entry behind the events.
    pub(crate) stop: Option<Unread>,
}

/// An unreadable entry.
#[derive(Debug)]
pub(crate) struct Unread {
    /// The id of the entry in the journal: `epoch-position`, by the position of the entry's last event.
    pub(crate) id: String,
    pub(crate) why: &'static str,
}

impl Entries {
    /// Collects the events of decoded entries, until `max` events are collected or an entry cannot be decoded.
    pub(crate) fn collect<E>(entries: impl IntoIterator<Item = Result<E, Unread>>, max: usize) -> Self
    where
        E: IntoIterator<Item = JournalEntry>,
    {
        let mut events = Vec::new();
        for entry in entries {
            if events.len() >= max {
                break;
            }
            match entry {
                Ok(decoded) => events.extend(decoded),
                Err(unread) => return Self { events, stop: Some(unread) },
            }
        }
        Self { events, stop: None }
    }

    /// Leaves out events up to the position `from`, and events behind a gap. `end` is the end of the journal.
    ///
    /// An event behind a gap must not be acknowledged: a request waiting for the record of the missing entry
    /// would be answered.
    pub(crate) fn continue_from(self, from: u64, end: Receipt) -> Self {
        let Self { mut events, mut stop } = self;
        events.retain(|event| event.receipt.position > from);
        let is_next = |(position, event): (u64, &JournalEntry)| event.receipt.position == position;
        let consecutive = (from + 1..).zip(&events).take_while(|pair| is_next(*pair)).count();
        let is_gap =
            consecutive < events.len() || (events.is_empty() && stop.is_none() && from < end.position);
        if is_gap {
            events.truncate(consecutive);
            let next = from + 1 + consecutive as u64;
            stop = Some(Unread { id: format!("{}-{next}", end.epoch), why: "the entry is missing" });
        }
        Self { events, stop }
    }
}
