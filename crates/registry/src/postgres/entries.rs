//! Decodes the rows of a journal.

use seatkeeper_core::{Bucket, Event};
use serde_json::error::Category;

use super::from_row::from_row;
use super::row::unsigned;
use super::section::Section;
use crate::contract::{JournalEntry, Receipt};
use crate::entries::{Entries, Unread};

from_row! {
    /// A row of a bucket's journal. The row of a bucket without events to return has no position and no event.
    pub(super) struct EntryRow {
        pub(super) bucket: i16,
        epoch: i64,
        /// The acknowledged position and the end of the journal.
        acknowledged: i64,
        last: i64,
        position: Option<i64>,
        event: Option<String>,
        pub(super) depth: i64,
    }
}

/// Decodes rows of a bucket's journal, until a row cannot be decoded.
pub(super) fn decode(section: &Section, bucket: Bucket, rows: &[EntryRow]) -> Entries {
    Entries::collect(rows.iter().map(|row| row.read(section, bucket)), usize::MAX)
}

/// Decodes the oldest unacknowledged rows of a bucket's journal, until a row is missing or cannot be decoded. Returns
/// whether the events reach the end of the journal as well.
pub(super) fn decode_oldest(section: &Section, bucket: Bucket, rows: &[EntryRow]) -> (Entries, bool) {
    let read = decode(section, bucket, rows);
    let Some(EntryRow { epoch, acknowledged, last, .. }) = rows.first() else { return (read, false) };
    let end = Receipt { bucket, epoch: unsigned(*epoch), position: unsigned(*last) };
    let read = read.continue_from(unsigned(*acknowledged), end);
    let is_whole = read.events.last().is_some_and(|event| event.receipt == end);
    (read, is_whole)
}

impl EntryRow {
    fn read(&self, section: &Section, bucket: Bucket) -> Result<Option<JournalEntry>, Unread> {
        let (Some(position), Some(event)) = (self.position, &self.event) else { return Ok(None) };
        let (epoch, position) = (unsigned(self.epoch), unsigned(position));
        let unread =
            |error: serde_json::Error| Unread { id: format!("{epoch}-{position}"), why: why(&error) };
        let event: Event = serde_json::from_str(event).map_err(unread)?;
        let receipt = Receipt { bucket, epoch, position };
        Ok(Some(JournalEntry { receipt, event: Event { epoch: section.stamp(bucket, epoch), ..event } }))
    }
}

/// Returns the reason without the text of the error, which may quote a user of the event.
fn why(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Data => "the event has an unknown form",
        Category::Io | Category::Syntax | Category::Eof => "the event is no JSON",
    }
}
