//! Independence of the rebuilt and the lasting section in one database.

mod copies;
mod steps;
mod unreadable;

use std::sync::Arc;

use seatkeeper_core::{
    Actor, Authority, Bucket, Claim, EndReason, Origin, Particulars, Policy, PoolId, PoolKind, Reach, Region,
    RegistryTime, Seats, SessionId, Span, Standing, TenantId, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_registry::postgres::{LastingState, PostgresRegistry};
use seatkeeper_registry::{
    Admission as _, Answer, Claimed, Ended, Epochs, Error, Expiry as _, Heartbeat, Journal as _, Rebuild,
    Request, Sessions as _,
};
use seatkeeper_testbed::postgres::{Database, database};
use sqlx::{Connection as _, PgConnection};

const EPOCH: u64 = 7;

/// Seats of each pool.
const SEATS: u32 = 3;

/// Both sections, and the epoch of each bucket.
struct Sections {
    rebuilt: PostgresRegistry,
    lasting: PostgresRegistry,
    epochs: Arc<Epochs>,
    database: Database,
}

impl Sections {
    async fn start() -> Self {
        let database = tokio::task::spawn_blocking(database).await.expect("a database");
        let epochs = Arc::new(Epochs::default());
        let rebuilt = node(&database, &epochs).await;
        let lasting = rebuilt.lasting(Arc::clone(&epochs));
        match lasting.begin_lasting().await.expect("the section of a new database") {
            LastingState::Empty(filling) => {
                filling.serve(RegistryTime::default()).await.expect("the section can be served");
            }
            LastingState::Served | LastingState::InUse => panic!("nobody has used the database"),
        }
        Self { rebuilt, lasting, epochs, database }
    }

    /// Returns the rebuilt section of another node.
    async fn another_node(&self) -> PostgresRegistry {
        node(&self.database, &self.epochs).await
    }

    /// Clears a bucket for an epoch and serves the bucket.
    async fn serve(&self, bucket: Bucket, epoch: u64) {
        self.rebuilt.rebuild_begin(bucket, epoch).await.expect("a rebuild can begin");
        self.rebuilt
            .rebuild_clear(bucket, epoch, RegistryTime::default())
            .await
            .expect("a bucket can be emptied");
        self.rebuilt.rebuild_finish(bucket, epoch, None).await.expect("a bucket can be served");
        self.epochs.set(bucket, epoch);
    }
}

async fn node(database: &Database, epochs: &Arc<Epochs>) -> PostgresRegistry {
    let url = database.url().parse().expect("the URL of a database");
    let node = PostgresRegistry::connect(&url, 4, Arc::clone(epochs), Region::default(), 1_000);
    node.await.expect("the registry can be opened")
}

fn pool(kind: PoolKind) -> PoolId {
    PoolId::new(kind, TenantId::from("tenant"), "pool")
}

fn anyone() -> Authority {
    Authority::new("tenant".into(), Reach::Tenant)
}

fn origin() -> Origin {
    Origin { actor: Actor::User("ann".into()), request: None }
}

fn terms() -> Terms {
    let ttl = Span::from_secs(3_600);
    Terms { version: 1, limit: Seats(SEATS), ttl, ends_at: None, standing: Standing::Open }
}

/// Claims a seat for `holder` in an open pool.
async fn ask(registry: &PostgresRegistry, pool: &PoolId, holder: &str) -> Result<Claimed, Error> {
    let policy = Policy {
        terms: Some(terms()),
        ttl_default: terms().ttl,
        when_named: WhenNamed::SameHolder,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
    };
    let claim =
        Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None };
    let (origin, particulars) = (origin(), Particulars::default());
    let request =
        Request { pool, claim: &claim, policy: &policy, origin: &origin, particulars: &particulars };
    registry.claim(request).await
}

async fn claim(registry: &PostgresRegistry, pool: &PoolId) -> (SessionId, Claimed) {
    registry.open(pool, 0, Some(terms()), Vec::new()).await.expect("a pool can be opened");
    let claimed = ask(registry, pool, "ann").await.expect("an answer");
    match &claimed.answer {
        Answer::Granted { session, .. } => (session.session.id, claimed),
        Answer::Denied(why) => panic!("{why:?}"),
    }
}

#[tokio::test]
async fn a_session_of_one_section_is_missing_in_the_other() {
    let sections = Sections::start().await;
    let (license, capacity) = (pool(PoolKind::License), pool(PoolKind::Capacity));
    for bucket in [license.bucket(), capacity.bucket()] {
        sections.serve(bucket, EPOCH).await;
    }
    let (seat, _) = claim(&sections.rebuilt, &license).await;
    let (month, _) = claim(&sections.lasting, &capacity).await;
    let (who, origin) = (anyone(), origin());
    for (registry, own, foreign) in [(&sections.rebuilt, seat, month), (&sections.lasting, month, seat)] {
        assert_eq!(registry.session(foreign, &who).await.expect("an answer"), None);
        assert_eq!(registry.heartbeat(foreign, &who, &origin).await.expect("an answer"), Heartbeat::Missing);
        let ended = registry.end(foreign, &who, EndReason::Revoked, &origin).await.expect("an answer");
        assert_eq!(ended, Ended::Missing);
        assert!(registry.session(own, &who).await.expect("an answer").is_some());
        let read = registry.journal_read(100).await.expect("a journal");
        assert_eq!(read.entries.len(), 1, "each has a journal of its own");
    }
}

/// The record of a rebuilt bucket has the dates of Redis, whose clock may be ahead.
#[tokio::test]
async fn a_rebuild_from_a_later_record_moves_the_time_of_its_bucket_alone() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let other = Bucket::all().find(|bucket| *bucket != license.bucket()).expect("a bucket");
    let before = sections.lasting.now().await.expect("the time is told");
    let ahead = before + Span::from_secs(300);
    sections.rebuilt.rebuild_begin(license.bucket(), EPOCH).await.expect("a rebuild can begin");
    sections.rebuilt.rebuild_clear(license.bucket(), EPOCH, ahead).await.expect("a bucket can be cleared");
    sections.rebuilt.rebuild_finish(license.bucket(), EPOCH, None).await.expect("a bucket can be served");
    assert!(sections.rebuilt.now_in(license.bucket()).await.expect("the time is told") >= ahead);
    // Sessions of other buckets would expire while their holders renew them in time.
    assert!(sections.rebuilt.now_in(other).await.expect("the time is told") < ahead);
    let step = "SELECT registry.time_in($1)";
    let mut connection = PgConnection::connect(&sections.database.url()).await.expect("the server answers");
    let stepped: i64 = sqlx::query_scalar(step)
        .bind(other.number().cast_signed())
        .fetch_one(&mut connection)
        .await
        .expect("the bucket has a time");
    assert!(stepped < ahead.as_millis().cast_signed());
    let (_, claimed) = claim(&sections.lasting, &pool(PoolKind::Capacity)).await;
    let Answer::Granted { session, .. } = claimed.answer else { panic!("{claimed:?}") };
    assert!(session.session.started < ahead, "{:?} of {ahead:?}", session.session);
    assert!(sections.lasting.now().await.expect("the time is told") < ahead);
}

#[tokio::test]
async fn what_lasts_outlives_every_rebuild_and_its_events_bear_the_epoch_of_their_bucket() {
    let sections = Sections::start().await;
    let capacity = pool(PoolKind::Capacity);
    let bucket = capacity.bucket();
    // The lasting section is served before the rebuilt section.
    let (month, claimed) = claim(&sections.lasting, &capacity).await;
    for epoch in [EPOCH, EPOCH + 1] {
        sections.serve(bucket, epoch).await;
        assert!(sections.lasting.session(month, &anyone()).await.expect("an answer").is_some());
        let read = sections.lasting.journal_read(100).await.expect("a journal");
        let told: Vec<_> = read.entries.iter().map(|entry| (entry.receipt, entry.event.epoch)).collect();
        assert_eq!(told, [(claimed.receipt, epoch)]);
    }
    sections.lasting.journal_acknowledge(claimed.receipt).await.expect("it is on record");
    assert_eq!(sections.lasting.journal_read(100).await.expect("a journal").entries.len(), 0);
}

#[tokio::test]
async fn what_is_replayed_says_in_which_epoch_it_was_decided() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let bucket = license.bucket();
    sections.serve(bucket, EPOCH).await;
    claim(&sections.rebuilt, &license).await;
    for epoch in [EPOCH + 1, EPOCH + 2] {
        sections.rebuilt.rebuild_begin(bucket, epoch).await.expect("a rebuild can begin");
        let read = sections.rebuilt.rebuild_journal(bucket, epoch, None, 10).await.expect("a journal");
        let decided: Vec<_> = read.iter().map(|entry| entry.event.epoch).collect();
        assert_eq!(decided, [EPOCH], "however many rebuilds broke off since");
    }
    let refused = sections.rebuilt.rebuild_journal(bucket, EPOCH + 1, None, 10).await;
    assert!(matches!(refused, Err(Error::NotServing { .. })));
}

/// Otherwise answers of the new epoch would count as recorded before their commit.
#[tokio::test]
async fn a_rebuild_that_has_begun_gives_no_position_of_its_epoch() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let bucket = license.bucket();
    sections.serve(bucket, EPOCH).await;
    let (node, another) = (&sections.rebuilt, sections.another_node().await);
    let (_, claimed) = claim(node, &license).await;
    another.journal_acknowledge(claimed.receipt).await.expect("an answer");
    another.rebuild_begin(bucket, EPOCH + 1).await.expect("a rebuild can begin");
    let read = node.journal_read(100).await.expect("a journal");
    assert_eq!(read.acknowledged, [claimed.receipt]);
}

/// A single deletion of every session would exceed the time limit of a statement. The trigger stands for the limit.
#[tokio::test]
async fn a_bucket_with_many_sessions_is_cleared_for_a_rebuild() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let bucket = license.bucket();
    sections.serve(bucket, EPOCH).await;
    claim(&sections.rebuilt, &license).await;
    let mut operator = PgConnection::connect(&sections.database.url()).await.expect("a connection");
    for statement in [MANY_SESSIONS, LONG_DELETES_ARE_CANCELLED] {
        sqlx::raw_sql(statement).execute(&mut operator).await.expect("a change of the tables");
    }
    sections.serve(bucket, EPOCH + 1).await;
    let left =
        sqlx::query_scalar::<_, i64>("SELECT count(*) FROM registry.sessions").fetch_one(&mut operator);
    assert_eq!(left.await.expect("a count"), 0);
}

const MANY_SESSIONS: &str = "
    INSERT INTO registry.sessions (id, pool, holder, users, started, last_heartbeat, ttl, tier)
    SELECT gen_random_uuid(), pool, number, '{ann}', 1, 1, 60000, 1
    FROM registry.pools, generate_series(1, 12000) AS number";

const LONG_DELETES_ARE_CANCELLED: &str = "
    CREATE FUNCTION cancel_long() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(*) FROM gone) > 10000 THEN
            RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER cancel_long AFTER DELETE ON registry.sessions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION cancel_long()";
