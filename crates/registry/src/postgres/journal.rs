//! The journal: events wait in a table until a node brings them to the ledger, and are deleted on
//! acknowledgement.

use std::collections::HashSet;

use async_trait::async_trait;
use seatkeeper_core::Bucket;

use super::PostgresRegistry;
use super::entries::{EntryRow, decode_oldest};
use super::fault::Fault;
use super::from_row::from_row;
use super::limit::run;
use super::row::{signed, unsigned};
use super::section::Section;
use crate::Error;
use crate::contract::{Journal, JournalRead, Receipt, UnreadableEntry};

/// Upper bound of a read's size.
const READ_MAX: i64 = 1_000_000;

from_row! {
    struct AcknowledgedRow {
        bucket: i16,
        epoch: i64,
        position: i64,
    }
}

from_row! {
    struct EndRow {
        epoch: i64,
        serving: bool,
        position: i64,
    }
}

#[async_trait]
impl Journal for PostgresRegistry {
    async fn journal_read(&self, max: usize) -> Result<JournalRead, Error> {
        let max = i64::try_from(max).unwrap_or(READ_MAX).min(READ_MAX);
        let mut held_up: Vec<Bucket> =
            self.unreadable.current().into_iter().map(|entry| entry.bucket).collect();
        let resting = held_up.iter().filter(|bucket| self.unreadable.is_resting(**bucket));
        let resting: Vec<i16> = resting.map(|bucket| self.section.number_of(*bucket)).collect();
        let connection = self.connection().await?;
        let receipt_epoch = self.section.receipt_epoch();
        let read = sqlx::query_as(include_str!("sql/journal_read.sql"))
            .bind(max)
            .bind(self.section.first())
            .bind(&resting);
        let rows: Vec<EntryRow> =
            run(connection, async |connection| read.fetch_all(connection).await).await??;
        self.backlog.is(rows.first().map_or(0, |row| row.depth));
        let mut entries = Vec::with_capacity(rows.len());
        for rows in rows.chunk_by(|row, next| row.bucket == next.bucket) {
            let number = rows[0].bucket;
            if !resting.contains(&number) {
                let bucket = self.section.bucket_of(number)?;
                let (read, is_whole) = decode_oldest(&self.section, bucket, rows);
                let journal = self.section.journal_of(bucket);
                entries.extend(self.unreadable.after_read(bucket, &journal, read, is_whole));
            }
        }
        let read: HashSet<Bucket> = entries.iter().map(|entry| entry.receipt.bucket).collect();
        // An awaited bucket without waiting events was brought to the ledger by another node. An unreadable entry
        // may have been recorded or cleared by another node.
        held_up.extend(self.backlog.awaited());
        held_up.retain(|bucket| !read.contains(bucket));
        for entry in &mut entries {
            entry.receipt = receipt_epoch.stamp(entry.receipt);
        }
        let missing = held_up.into_iter().map(|bucket| self.section.number_of(bucket)).collect();
        Ok(JournalRead { entries, acknowledged: self.acknowledged(missing).await? })
    }

    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        let connection = self.connection().await?;
        // The ledger in a copy of the database may lack the events.
        let Some(epoch) = self.section.stored_epoch(through.epoch) else { return Ok(()) };
        let acknowledge = sqlx::query_scalar(include_str!("sql/acknowledge.sql"))
            .bind(self.section.number_of(through.bucket))
            .bind(signed(epoch))
            .bind(signed(through.position));
        let forgotten: i64 =
            run(connection, async |connection| acknowledge.fetch_one(connection).await).await??;
        self.backlog.acknowledged(through);
        self.backlog.shrank(forgotten);
        Ok(())
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    async fn journal_woken(&self) {
        self.backlog.wakeup().await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        let connection = self.connection().await?;
        let receipt_epoch = self.section.receipt_epoch();
        let read = sqlx::query_as(include_str!("sql/journal_end.sql")).bind(self.section.number_of(bucket));
        let end: EndRow = run(connection, async |connection| read.fetch_one(connection).await).await??;
        let epoch = unsigned(end.epoch);
        self.serves(bucket, epoch, end.serving)?;
        let receipt = receipt_epoch.stamp(Receipt { bucket, epoch, position: unsigned(end.position) });
        self.backlog.told(receipt, 0);
        Ok(receipt)
    }

    fn unreadable_entries(&self) -> Vec<UnreadableEntry> {
        self.unreadable.current()
    }
}

impl PostgresRegistry {
    /// Returns `Err(JournalFull)` while too many events wait, so that no session is admitted. Returns
    /// `Err(UnreadableEntry)` for a bucket that is held up.
    pub(super) async fn room_in_journal(&self, bucket: Bucket) -> Result<(), Error> {
        self.unreadable.check(bucket)?;
        if self.backlog.wants_reading() {
            let read = sqlx::query_scalar(include_str!("sql/depth.sql")).bind(self.section.first());
            let depth: i64 =
                run(self.connection().await?, async |connection| read.fetch_one(connection).await).await??;
            self.backlog.is(depth);
        }
        let depth = self.backlog.depth();
        if depth < self.journal_events_max { Ok(()) } else { Err(Error::JournalFull { depth }) }
    }

    async fn acknowledged(&self, buckets: Vec<i16>) -> Result<Vec<Receipt>, Fault> {
        if buckets.is_empty() {
            return Ok(Vec::new());
        }
        let connection = self.connection().await?;
        let receipt_epoch = self.section.receipt_epoch();
        let read = sqlx::query_as(include_str!("sql/acknowledged.sql")).bind(buckets);
        let rows: Vec<AcknowledgedRow> =
            run(connection, async |connection| read.fetch_all(connection).await).await??;
        let receipts: Vec<Receipt> =
            rows.into_iter().map(|row| row.read(&self.section)).collect::<Result<_, _>>()?;
        let has_passed = |receipt: &Receipt, end: Receipt| {
            receipt.bucket == end.bucket && (receipt.epoch, receipt.position) >= (end.epoch, end.position)
        };
        self.unreadable.clear_passed(|end| receipts.iter().any(|receipt| has_passed(receipt, end)));
        let receipts: Vec<Receipt> =
            receipts.into_iter().map(|receipt| receipt_epoch.stamp(receipt)).collect();
        receipts.iter().for_each(|&receipt| self.backlog.acknowledged(receipt));
        Ok(receipts)
    }
}

impl AcknowledgedRow {
    fn read(self, section: &Section) -> Result<Receipt, Fault> {
        let (epoch, position) = (unsigned(self.epoch), unsigned(self.position));
        Ok(Receipt { bucket: section.bucket_of(self.bucket)?, epoch, position })
    }
}
