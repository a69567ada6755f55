//! The audit log, read beside the server and folded by code that is independent of the product's replay.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use seatkeeper_core::TenantId;
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord, Stream};
use seatkeeper_ledger::verify::{Proof, Verdict};
use seatkeeper_ledger::{Error, Ledger, Location};

use crate::harness::TENANT;

/// Time limit for a ledger to open, or to be read, on a busy machine.
const OPENED_WITHIN: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(50);

/// Records of a page.
const PAGE: u32 = 1_000;

/// The state of a tenant's pools and sessions, folded from the audit log so far.
#[derive(Debug)]
pub(crate) struct Books {
    tenant: TenantId,
    last_id: u64,
    pools: HashMap<String, PoolBooks>,
    sessions: HashMap<String, Story>,
}

#[derive(Debug, Default)]
struct PoolBooks {
    seq: u64,
    /// Live session ids by holder.
    live: BTreeMap<String, String>,
    denials: u64,
}

/// A session in the audit log. Times are the registry's, in milliseconds.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) pool: String,
    pub(crate) holder: String,
    pub(crate) limit: u32,
    pub(crate) tier: u8,
    pub(crate) began: u64,
    pub(crate) began_seq: u64,
    /// The device's name, given by the device.
    pub(crate) device_name: Option<String>,
    pub(crate) end: Option<End>,
}

/// The end of a session.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) seq: u64,
    pub(crate) reason: String,
    pub(crate) last_heartbeat: u64,
    pub(crate) expires: u64,
}

impl Default for Books {
    /// Returns empty books of the default tenant.
    fn default() -> Self {
        Self::empty(TENANT)
    }
}

impl Books {
    fn empty(tenant: &str) -> Self {
        Self { tenant: tenant.into(), last_id: 0, pools: HashMap::new(), sessions: HashMap::new() }
    }

    /// Reads the books of the default tenant.
    pub(crate) async fn read(ledger: &Location) -> Self {
        Self::of_tenant(ledger, TENANT).await
    }

    /// Reads the books of a tenant.
    pub(crate) async fn of_tenant(ledger: &Location, tenant: &str) -> Self {
        let mut books = Self::empty(tenant);
        books.catch_up(ledger).await;
        books
    }

    /// Reads the records since the last call. Fails the test if a record is missing, duplicated or above the
    /// limit.
    pub(crate) async fn catch_up(&mut self, ledger: &Location) {
        for record in records_after(ledger, &self.tenant, self.last_id).await {
            assert!(record.id > self.last_id, "records out of order: {record:?}");
            self.last_id = record.id;
            if record.stream == Stream::Session {
                self.take(&record);
            }
        }
    }

    /// Returns a session, and fails the test if the session is not on record.
    #[track_caller]
    pub(crate) fn story(&self, session: &str) -> &Story {
        self.sessions.get(session).unwrap_or_else(|| panic!("session {session} is not on record"))
    }

    /// Returns every session that ever began, with its id.
    pub(crate) fn stories(&self) -> impl Iterator<Item = (&str, &Story)> {
        self.sessions.iter().map(|(id, story)| (id.as_str(), story))
    }

    /// Returns the number of claims that a pool denied.
    pub(crate) fn denials(&self, pool: &str) -> u64 {
        self.pools.get(pool).map_or(0, |pool| pool.denials)
    }

    /// Returns holder and session id of a pool's live sessions.
    pub(crate) fn live(&self, pool: &str) -> Vec<(&str, &str)> {
        let pool = self.pools.get(pool).into_iter().flat_map(|pool| &pool.live);
        pool.map(|(holder, id)| (holder.as_str(), id.as_str())).collect()
    }

    /// Returns the most sessions that a pool ever had at one instant, computed from the recorded times alone.
    pub(crate) fn most_at_once(&self, pool: &str) -> i64 {
        let mut steps = Vec::new();
        for story in self.sessions.values().filter(|story| story.pool == pool) {
            let ended = story.end.as_ref().map_or(u64::MAX, |end| end.at);
            // A released seat is free in the same millisecond. A session shorter than a millisecond counts at
            // no instant.
            if ended > story.began {
                steps.extend([(story.began, 1), (ended, -1)]);
            }
        }
        steps.sort_unstable();
        let levels = steps.into_iter().scan(0_i64, |live, (_, step)| {
            *live += step;
            Some(*live)
        });
        levels.max().unwrap_or(0)
    }

    fn take(&mut self, record: &AuditRecord) {
        let pool = self.pools.entry(record.pool.name.to_string()).or_default();
        let next = pool.seq + 1;
        assert_eq!(record.seq, next, "a record is missing or there twice: {record:?}");
        pool.seq = next;
        let session = record.session.map(|session| session.to_string());
        let holder = || record.holder.as_ref().expect("a holder").as_str().to_owned();
        match (record.action, session) {
            (Action::Admitted, Some(id)) => {
                let holder = holder();
                assert!(!pool.live.contains_key(&holder), "{holder} was admitted twice: {record:?}");
                pool.live.insert(holder.clone(), id.clone());
                assert!(pool.live.len() <= record.limit as usize, "above the limit: {record:?}");
                let began = Story::from_record(record, holder);
                assert!(self.sessions.insert(id, began).is_none(), "began twice: {record:?}");
            }
            (Action::Ended, Some(id)) => {
                let was = pool.live.remove(&holder());
                assert_eq!(was.as_ref(), Some(&id), "ended without being live: {record:?}");
                self.sessions.get_mut(&id).expect("it was live").end = Some(End::from_record(record));
            }
            (Action::Denied, _) => pool.denials += record.count,
            _ => panic!("not a record of sessions: {record:?}"),
        }
        let live = pool.live.len();
        assert_eq!(record.live.map(|live| live as usize), Some(live), "live sessions: {record:?}");
    }
}

impl Story {
    fn from_record(record: &AuditRecord, holder: String) -> Self {
        Self {
            pool: record.pool.name.to_string(),
            holder,
            limit: record.limit,
            tier: record.tier.expect("a tier").0,
            began: record.at.as_millis(),
            began_seq: record.seq,
            device_name: record.device.as_ref().and_then(|device| device.name.as_deref().map(Into::into)),
            end: None,
        }
    }

    /// Returns the end reason, or `None` for a live session.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.end.as_ref().map(|end| end.reason.as_str())
    }
}

impl End {
    fn from_record(record: &AuditRecord) -> Self {
        Self {
            at: record.at.as_millis(),
            seq: record.seq,
            reason: record.reason.clone().expect("a reason"),
            last_heartbeat: record.last_heartbeat.expect("a heartbeat").as_millis(),
            expires: record.expires.expect("an expiry").as_millis(),
        }
    }
}

/// Opens a ledger for reading. On a busy machine PostgreSQL may accept a connection after the ledger's time limit.
pub(crate) async fn opened(location: impl Into<Location>) -> Ledger {
    let (location, started) = (location.into(), Instant::now());
    loop {
        match Ledger::open_read_only(location.clone()).await {
            Ok(ledger) => return ledger,
            Err(error) => assert!(started.elapsed() < OPENED_WITHIN, "the ledger stays closed: {error:?}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Repeats a look at a ledger until PostgreSQL answers in time.
pub(crate) async fn read<T>(look: impl AsyncFn() -> Result<T, Error>) -> T {
    let started = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(error @ Error::Unavailable(_)) if started.elapsed() < OPENED_WITHIN => {
                println!("the ledger is asked again: {error:?}");
            }
            Err(error) => panic!("the ledger cannot be read: {error:?}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Verifies the audit log as `audit verify` does. Fails the test with the finding if the log does not verify.
pub(crate) async fn proof_of(ledger: &Location) -> Proof {
    let ledger = opened(ledger.clone()).await;
    let verdict = read(async || ledger.verify(|_| ()).await).await;
    ledger.close().await;
    match verdict {
        Verdict::Proven(proof) => proof,
        Verdict::Broken(finding) => panic!("the log does not prove itself: {finding}"),
    }
}

async fn records_after(ledger: &Location, tenant: &TenantId, last_id: u64) -> Vec<AuditRecord> {
    let ledger = opened(ledger.clone()).await;
    let filter = AuditFilter::default();
    let (mut newest_first, mut cursor) = (Vec::new(), None);
    loop {
        let page = read(async || ledger.audit(tenant, &filter, cursor, PAGE).await).await;
        let unknown = page.items.into_iter().take_while(|record| record.id > last_id);
        let before = newest_first.len();
        newest_first.extend(unknown);
        cursor = page.next;
        if cursor.is_none() || newest_first.len() - before < PAGE as usize {
            break;
        }
    }
    ledger.close().await;
    newest_first.reverse();
    newest_first
}
