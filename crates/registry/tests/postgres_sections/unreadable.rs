//! Journal rows that a node cannot decode, or misses: each holds up its own bucket, and is never skipped.

use std::path::Path;
use std::sync::Arc;

use seatkeeper_core::{Bucket, EndReason, PoolId, PoolKind, RegistryTime, SessionId};
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_registry::{Error, Journal as _, JournalRead, Rebuild as _, Receipt, Sessions as _, State};
use sqlx::{Connection as _, PgConnection};

use super::{EPOCH, Sections, anyone, ask, claim, origin, pool};

/// Appends an event of an unknown form to the journal of bucket $1, as a newer version would.
const ADD_FOREIGN_ROW: &str = "
    WITH b AS (
        UPDATE registry.buckets SET position = position + 1, fence = fence + 1 WHERE bucket = $1
        RETURNING bucket, position
    )
    INSERT INTO registry.journal SELECT bucket, position, '{\"change\": \"of a newer version\"}' FROM b
    RETURNING position";

/// Number of the lasting section's first bucket in PostgreSQL.
const LASTING: i16 = 256;

impl Sections {
    async fn sql(&self) -> PgConnection {
        PgConnection::connect(&self.database.url()).await.expect("the server answers")
    }

    /// Appends a row of an unknown form to a bucket of PostgreSQL. Returns the row's position.
    async fn add_foreign_row(&self, number: i16) -> u64 {
        let position = sqlx::query_scalar::<_, i64>(ADD_FOREIGN_ROW).bind(number);
        position.fetch_one(&mut self.sql().await).await.expect("a row").cast_unsigned()
    }

    async fn delete_row(&self, number: i16, position: u64) {
        let delete = sqlx::query("DELETE FROM registry.journal WHERE bucket = $1 AND position = $2");
        let delete = delete.bind(number).bind(position.cast_signed()).execute(&mut self.sql().await).await;
        assert_eq!(delete.expect("a deletion").rows_affected(), 1);
    }
}

fn number(bucket: Bucket) -> i16 {
    bucket.number().cast_signed()
}

fn another_pool() -> PoolId {
    let another = PoolId::new(PoolKind::License, "tenant".into(), "video");
    assert_ne!(another.bucket(), pool(PoolKind::License).bucket());
    another
}

async fn end(registry: &PostgresRegistry, session: SessionId) {
    registry.end(session, &anyone(), EndReason::Revoked, &origin()).await.expect("an answer");
}

async fn read(registry: &PostgresRegistry) -> JournalRead {
    registry.journal_read(100).await.expect("a row of one bucket is no failure of a read")
}

/// Reads the journals, and acknowledges all events. Returns the pool and the number of each event.
async fn drain(registry: &PostgresRegistry) -> Vec<(PoolId, u64)> {
    let mut drained = Vec::new();
    for entry in read(registry).await.entries {
        registry.journal_acknowledge(entry.receipt).await.expect("an answer");
        drained.push((entry.event.pool, entry.event.seq));
    }
    drained
}

/// Returns the journal and the id of each entry in the way.
fn in_the_way(registry: &PostgresRegistry) -> Vec<(String, String)> {
    registry.unreadable_entries().into_iter().map(|entry| (entry.stream, entry.id)).collect()
}

/// Returns a server with the bucket of a license served, the license and the bucket.
async fn served_license() -> (Sections, PoolId, Bucket) {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let bucket = license.bucket();
    sections.serve(bucket, EPOCH).await;
    (sections, license, bucket)
}

#[tokio::test]
async fn an_unreadable_row_holds_up_the_events_of_its_bucket_alone() {
    let sections = Sections::start().await;
    let (held_up, other) = (pool(PoolKind::License), another_pool());
    for bucket in [held_up.bucket(), other.bucket()] {
        sections.serve(bucket, EPOCH).await;
    }
    let node = &sections.rebuilt;
    let (ann, _) = claim(node, &held_up).await;
    sections.add_foreign_row(number(held_up.bucket())).await;
    end(node, ann).await;

    assert_eq!(drain(node).await, [(held_up.clone(), 1)], "events before the row are read");
    let (bob, _) = claim(node, &other).await;
    assert_eq!(read(node).await.entries.len(), 1);
    let refused = ask(node, &held_up, "carl").await;
    assert!(matches!(refused, Err(Error::UnreadableEntry { .. })), "it would wait in vain: {refused:?}");
    let read_beside = read(node).await;
    assert_eq!(read_beside.entries.len(), 1, "{read_beside:?}");
    assert_eq!(read_beside.entries[0].event.pool, other);
    let before = Receipt { bucket: held_up.bucket(), epoch: EPOCH, position: 1 };
    assert!(read_beside.acknowledged.contains(&before), "{read_beside:?}");
    assert_eq!(drain(node).await, [(other.clone(), 1)]);
    assert_eq!(drain(node).await, []);
    assert_eq!(node.journal_depth(), 2, "the waiting events count");
    end(node, bob).await;
    assert_eq!(drain(node).await, [(other, 2)]);

    let journal = format!("registry.journal, bucket {}", held_up.bucket().number());
    assert_eq!(in_the_way(node), [(journal, format!("{EPOCH}-2"))]);
}

#[tokio::test]
async fn a_read_that_ends_before_an_unreadable_row_does_not_clear_it() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    sections.serve(license.bucket(), EPOCH).await;
    let node = &sections.rebuilt;
    claim(node, &license).await;
    ask(node, &license, "bob").await.expect("an answer");
    sections.add_foreign_row(number(license.bucket())).await;
    for (max, events) in [(100, 2), (1, 1)] {
        let read = node.journal_read(max).await.expect("a row of one bucket is no failure of a read");
        assert_eq!(read.entries.len(), events);
        assert_eq!(node.unreadable_entries().len(), 1);
    }
}

#[tokio::test]
async fn an_unreadable_row_of_the_lasting_section_has_the_number_of_its_bucket_in_postgresql() {
    let sections = Sections::start().await;
    let capacity = pool(PoolKind::Capacity);
    claim(&sections.lasting, &capacity).await;
    let row = LASTING + number(capacity.bucket());
    sections.add_foreign_row(row).await;
    assert_eq!(drain(&sections.lasting).await, [(capacity, 1)]);
    assert_eq!(
        in_the_way(&sections.lasting),
        [(format!("registry.journal, bucket {row}"), "1-2".to_owned())]
    );
    assert_eq!(drain(&sections.rebuilt).await, []);
    assert_eq!(in_the_way(&sections.rebuilt), []);
}

/// An answer may wait for the record of the missing row, and must not be sent when later events are on record.
#[tokio::test]
async fn a_missing_row_holds_up_the_events_behind_it() {
    let (sections, license, bucket) = served_license().await;
    let node = &sections.rebuilt;
    let (ann, _) = claim(node, &license).await;
    let first = sections.add_foreign_row(number(bucket)).await;
    end(node, ann).await;
    let last = sections.add_foreign_row(number(bucket)).await;

    sections.delete_row(number(bucket), first).await;
    assert_eq!(drain(node).await, [(license, 1)]);
    let ids = async || {
        read(node).await;
        in_the_way(node).into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, [format!("{EPOCH}-{first}")]);
    let through = Receipt { bucket, epoch: EPOCH, position: last - 1 };
    node.journal_acknowledge(through).await.expect("an answer");
    sections.delete_row(number(bucket), last).await;
    assert_eq!(ids().await, [""; 0], "the first row is on record");
    assert_eq!(ids().await, [format!("{EPOCH}-{last}")], "a row at the end is missed as well");
}

/// Nodes of a newer version record the row.
#[tokio::test]
async fn an_unreadable_row_that_another_node_records_is_out_of_the_way() {
    let (sections, license, bucket) = served_license().await;
    let (old, newer) = (&sections.rebuilt, sections.another_node().await);
    let (ann, _) = claim(old, &license).await;
    let position = sections.add_foreign_row(number(bucket)).await;
    assert_eq!(drain(old).await, [(license.clone(), 1)]);
    assert_eq!(drain(old).await, []);
    assert_eq!(old.unreadable_entries().len(), 1);

    newer.journal_acknowledge(Receipt { bucket, epoch: EPOCH, position }).await.expect("an answer");
    end(old, ann).await;
    assert_eq!(drain(old).await, [], "the bucket rests");
    assert_eq!(old.unreadable_entries(), []);
    assert_eq!(drain(old).await, [(license, 2)]);
}

#[tokio::test]
async fn a_rebuild_skips_no_unreadable_row() {
    let (sections, license, bucket) = served_license().await;
    let (node, other) = (&sections.rebuilt, sections.another_node().await);
    let (ann, _) = claim(node, &license).await;
    assert_eq!(sections.add_foreign_row(number(bucket)).await, 2);
    end(node, ann).await;
    read(&other).await;
    assert_eq!(other.unreadable_entries().len(), 1);

    let next = async |epoch, after| node.rebuild_journal(bucket, epoch, after, 100).await;
    node.rebuild_begin(bucket, EPOCH + 1).await.expect("a rebuild can begin");
    let before = next(EPOCH + 1, None).await.expect("events before the row are read");
    assert_eq!(before.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [1]);
    let after = Some(before[0].receipt);
    let refused = next(EPOCH + 1, after).await;
    let Err(Error::UnreadableEntry { bucket: named, entry }) = refused else { panic!("{refused:?}") };
    assert_eq!((named, entry), (bucket, format!("{EPOCH}-2")));
    read(&other).await;
    for registry in [node, &other] {
        assert_eq!(registry.unreadable_entries().len(), 1, "the row is still in the way of the rebuild");
    }

    sections.delete_row(number(bucket), 2).await;
    node.rebuild_begin(bucket, EPOCH + 2).await.expect("a rebuild can begin");
    let behind = next(EPOCH + 2, after).await.expect("the row is deleted");
    assert_eq!(behind.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [2]);
    node.rebuild_clear(bucket, EPOCH + 2, RegistryTime::default()).await.expect("a bucket can be cleared");
    assert_eq!(node.unreadable_entries(), []);
    read(&other).await;
    assert_eq!(other.unreadable_entries(), [], "another node has cleared the bucket");
}

/// Returns the first block of SQL behind a text of `docs/operations.md`.
fn sql_of_the_page(text: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let (_, behind) = page.split_once(text).expect("the text is on the page");
    let (_, block) = behind.split_once("```sql\n").expect("a block begins");
    block.split_once("```").expect("the block ends").0.to_owned()
}

#[tokio::test]
async fn the_remedy_of_the_page_has_the_bucket_rebuilt_without_the_row() {
    let (sections, license, bucket) = served_license().await;
    let node = &sections.rebuilt;
    let (ann, _) = claim(node, &license).await;
    sections.add_foreign_row(number(bucket)).await;
    end(node, ann).await;
    assert_eq!(drain(node).await, [(license.clone(), 1)]);
    assert_eq!(drain(node).await, []);

    let remedy = sql_of_the_page("*In PostgreSQL*, `stream` is");
    let remedy = remedy.replace("= 41", &format!("= {}", number(bucket))).replace("= 7", "= 2");
    sqlx::raw_sql(sqlx::AssertSqlSafe(remedy)).execute(&mut sections.sql().await).await.expect("SQL");
    let conditions = node.conditions().await;
    let condition = conditions.iter().find(|condition| condition.bucket == bucket).expect("a condition");
    assert_eq!(condition.state, State::Rebuilding { epoch: EPOCH }, "a state that the nodes rebuild");
    let refused = ask(&sections.another_node().await, &license, "bob").await;
    assert!(matches!(refused, Err(Error::NotServing { .. })), "{refused:?}");
    node.rebuild_begin(bucket, EPOCH + 1).await.expect("a rebuild can begin");
    let replayed = node.rebuild_journal(bucket, EPOCH + 1, None, 100).await.expect("no row is in the way");
    let replayed: Vec<_> = replayed.iter().map(|entry| (entry.event.epoch, entry.event.seq)).collect();
    assert_eq!(replayed, [(EPOCH, 2)]);
    sections.serve(bucket, EPOCH + 1).await;
    claim(node, &license).await;
    assert_eq!(drain(node).await, [(license, 1)]);
    assert_eq!(node.unreadable_entries(), []);
}

#[tokio::test]
async fn the_remedy_of_the_page_opens_a_bucket_of_capacities_anew() {
    let sections = Sections::start().await;
    let capacity = pool(PoolKind::Capacity);
    claim(&sections.lasting, &capacity).await;
    let row = LASTING + number(capacity.bucket());
    sections.add_foreign_row(row).await;
    assert_eq!(drain(&sections.lasting).await, [(capacity.clone(), 1)]);
    assert_eq!(drain(&sections.lasting).await, []);

    let remedy = sql_of_the_page("**A bucket of capacities that is held up.**");
    let remedy = remedy.replace("256 + 17", &row.to_string());
    sqlx::raw_sql(sqlx::AssertSqlSafe(remedy)).execute(&mut sections.sql().await).await.expect("SQL");
    let restarted = sections.another_node().await.lasting(Arc::clone(&sections.epochs));
    claim(&restarted, &capacity).await;
    assert_eq!(drain(&restarted).await, [(capacity, 1)]);
    assert_eq!(in_the_way(&restarted), []);
}
