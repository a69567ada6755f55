//! Decodes the stream entries of a journal.

use redis::Value;
use seatkeeper_core::Bucket;

use super::codec::{Garbled, event_of};
use crate::contract::{JournalEntry, Receipt};
use crate::entries::{Entries, Unread};

/// Decodes stream entries, until `max` events are decoded or an entry cannot be decoded.
pub(super) fn decode(bucket: Bucket, entries: &[Value], max: usize) -> Entries {
    let unread = |entry, why| Unread { id: id_text(entry), why };
    let decoded =
        entries.iter().map(|entry| events_of(bucket, entry).map_err(|Garbled(why)| unread(entry, why)));
    Entries::collect(decoded, max)
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
