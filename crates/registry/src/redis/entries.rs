//! Decodes the entries of a journal, up to a missing or undecodable entry.

use redis::Value;
use seatkeeper_core::Bucket;

use super::codec::{Garbled, event_of};
use crate::contract::{JournalEntry, Receipt};

/// The events of consecutive entries.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) events: Vec<JournalEntry>,
    /// The unreadable entry behind the events.
    pub(super) stop: Option<Unread>,
}

/// An unreadable entry.
#[derive(Debug)]
pub(super) struct Unread {
    /// The id of the entry in the stream.
    pub(super) id: String,
    pub(super) why: &'static str,
}

impl Entries {
    /// Decodes stream entries, until `max` events are decoded or an entry cannot be decoded.
    pub(super) fn decode(bucket: Bucket, entries: Vec<Value>, max: usize) -> Self {
        let mut events = Vec::new();
        for entry in entries {
            if events.len() >= max {
                break;
            }
            match events_of(bucket, &entry) {
                Ok(decoded) => events.extend(decoded),
                Err(Garbled(why)) => {
                    return Self { events, stop: Some(Unread { id: id_text(&entry), why }) };
                }
            }
        }
        Self { events, stop: None }
    }

    /// Leaves out events up to the position `from`, and events behind a gap. `end` is the end of the journal.
    ///
    /// An event behind a gap must not be acknowledged: a request waiting for the record of the missing entry
    /// would be answered.
    pub(super) fn continue_from(self, from: u64, end: Receipt) -> Self {
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

/// Returns the id of a stream entry as a text for operators.
fn id_text(entry: &Value) -> String {
    let Value::Array(entry) = entry else { return String::new() };
    let Some(Value::BulkString(id)) = entry.first() else { return String::new() };
    String::from_utf8_lossy(id).into_owned()
}

/// Decodes a stream entry: the id is the position of the last event, and each field is an event.
fn events_of(bucket: Bucket, entry: &Value) -> Result<Vec<JournalEntry>, Garbled> {
    let garbled = || Garbled("an entry of a journal");
    let Value::Array(entry) = entry else { return Err(garbled()) };
    let [Value::BulkString(id), Value::Array(fields)] = &entry[..] else { return Err(garbled()) };
    let id = std::str::from_utf8(id).map_err(|_| garbled())?;
    let (epoch, last) = id.split_once('-').ok_or_else(garbled)?;
    let epoch = epoch.parse().map_err(|_| garbled())?;
    let last: u64 = last.parse().map_err(|_| garbled())?;
    let (events, _) = fields.as_chunks();
    let before = last.checked_sub(events.len() as u64).ok_or_else(garbled)?;
    let event = |(position, [_, event]): (u64, &[Value; 2])| {
        let Value::BulkString(event) = event else { return Err(garbled()) };
        Ok(JournalEntry { receipt: Receipt { bucket, epoch, position }, event: event_of(event, epoch)? })
    };
    (before + 1..).zip(events).map(event).collect()
}
