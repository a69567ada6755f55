//! Rebuilds of a few buckets, over registries that fall silent at a step.

mod stub;

use std::sync::atomic::Ordering::SeqCst;

use seatkeeper_core::{PoolId, Span, Terms};
use seatkeeper_ledger::Settings;
use seatkeeper_ledger::buckets::BucketRow;
use tempfile::TempDir;
use uuid::Uuid;

use self::stub::{SilentStep, StubRegistry};
use super::super::KnownEpochs;
use super::*;

/// Longer than the steps of a rebuild without a wait take on a busy machine, and shorter than [`LEASE`].
const SOON: Duration = Duration::from_millis(1_500);

/// The longest wait of a test.
const WAIT_MAX: Duration = Duration::from_secs(20);

struct NoTerms;

#[async_trait]
impl TermsSource for NoTerms {
    async fn terms(&self, _pool: &PoolId, _now: RegistryTime) -> Result<Option<Terms>, LedgerError> {
        Ok(None)
    }
}

/// A node with a lease on the epochs of its ledger.
struct Node {
    rebuilder: Arc<Rebuilder>,
    main: Arc<StubRegistry>,
    standby: Arc<StubRegistry>,
    _dir: TempDir,
}

fn bucket(number: u8) -> Bucket {
    Bucket::new(number.into()).expect("a bucket")
}

impl Node {
    /// Starts a node whose buckets 1 and 2 are in `mode`, and queues their rebuild to mode `registry`.
    async fn start(mode: BucketMode) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
        let reach = Arc::new(Reach::default());
        let lease = Arc::new(EpochLease::shared(KnownEpochs::default(), Arc::clone(&reach), true));
        let membership =
            Arc::new(Membership::new("node".to_owned(), ledger.clone(), Arc::clone(&reach), None));
        let (main, standby) = (Arc::default(), Arc::default());
        let targets = RebuildTargets {
            main: Arc::clone(&main) as Arc<dyn Rebuild>,
            is_ledgers: false,
            standby: Some(Arc::clone(&standby) as Arc<dyn Rebuild>),
            has_lasting: true,
        };
        let queue = Arc::new(RebuildQueue::default());
        let rebuilder = Rebuilder {
            targets,
            ledger,
            lease,
            queue,
            reach,
            terms: Arc::new(NoTerms),
            membership,
            metrics: Metrics::default(),
            sole_user_silent_from: Mutex::default(),
        };
        let node = Self { rebuilder: Arc::new(rebuilder), main, standby, _dir: dir };
        node.read().await;
        let raises = [bucket(1), bucket(2)].map(|bucket| EpochRaise {
            bucket,
            seen: node.row(bucket).epoch,
            next: epoch_after(node.row(bucket).epoch, 1),
        });
        let (ledger, id) = (&node.rebuilder.ledger, node.rebuilder.membership.id());
        for raised in ledger.raise(id, &raises, mode, Some("before")).await.expect("a raise") {
            ledger.note_replay(raised.bucket, raised.epoch).await.expect("a note");
        }
        node.read().await;
        let tasks = [bucket(1), bucket(2)].map(|bucket| RebuildTask {
            bucket,
            epoch: node.row(bucket).epoch,
            mode: BucketMode::Registry,
            identity: None,
            is_suspect: false,
        });
        node.rebuilder.queue.set(tasks.into(), Instant::now());
        node
    }

    /// Reads the ledger as `Confirm` does.
    async fn read(&self) {
        read(&self.rebuilder).await;
    }

    /// Returns the bucket's row by the latest reading.
    fn row(&self, bucket: Bucket) -> BucketRow {
        self.rebuilder.lease.rows()[usize::from(bucket.number())].clone()
    }

    /// Notes for each fill of a bucket whether the node may still answer in the bucket's epoch of now.
    fn note_old_answers_at_fills(&self) {
        let (lease, epochs) = (Arc::clone(&self.rebuilder.lease), [1, 2].map(|n| self.row(bucket(n)).epoch));
        self.main.on_clear(move |bucket| {
            let epoch = epochs[usize::from(bucket.number()) - 1];
            lease.check(bucket, epoch).now_or_never().is_some_and(|check| check.is_ok())
        });
    }

    /// Starts the rebuild.
    fn rebuild(&self) -> tokio::task::JoinHandle<Result<Progress, Error>> {
        let rebuilder = Arc::clone(&self.rebuilder);
        tokio::spawn(async move { rebuilder.activate().await })
    }

    /// Returns the buckets that another node can lock.
    async fn lockable(&self) -> Vec<Bucket> {
        let (other, both) = (Uuid::from_u128(1), [bucket(1), bucket(2)]);
        let locked =
            self.rebuilder.ledger.lock_buckets(other, &both, Span::from_secs(30)).await.expect("an answer");
        self.rebuilder.ledger.unlock_buckets(other, &locked).await.expect("an answer");
        locked
    }
}

async fn read(rebuilder: &Rebuilder) {
    let (began, nodes, rows) = rebuilder.membership.read().await.expect("a reading");
    rebuilder.lease.confirm(began, nodes, rows);
}

async fn eventually(mut holds: impl AsyncFnMut() -> bool) -> bool {
    let holds = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, holds).await.is_ok()
}

#[tokio::test]
async fn a_sole_node_fills_no_bucket_while_it_may_answer_in_the_old_epoch() {
    let node = Node::start(BucketMode::Registry).await;
    node.note_old_answers_at_fills();
    // No reading follows the raise: the connection of `Confirm` hangs.
    node.rebuild().await.expect("no panic").expect("a rebuild");
    assert_eq!(node.main.noted_at_clears(), [false, false]);
}

#[tokio::test]
async fn a_sole_node_that_has_read_its_raise_does_not_wait_out_its_lease() {
    let node = Node::start(BucketMode::Registry).await;
    node.note_old_answers_at_fills();
    let rebuilder = Arc::clone(&node.rebuilder);
    let confirm = tokio::spawn(async move {
        loop {
            rebuilder.lease.reading_wanted().await;
            read(&rebuilder).await;
        }
    });
    let rebuild = tokio::time::timeout(SOON, node.rebuild()).await.expect("no wait for a lease");
    rebuild.expect("no panic").expect("a rebuild");
    assert_eq!(node.main.noted_at_clears(), [false, false]);
    confirm.abort();
}

#[tokio::test]
async fn a_raise_is_announced_until_the_leases_on_the_old_epoch_are_over() {
    let node = Node::start(BucketMode::Registry).await;
    node.main.fall_silent(SilentStep::Clear, [bucket(1), bucket(2)]);
    let began = Instant::now();
    let rebuild = node.rebuild();
    let is_announced = async || node.rebuilder.membership.is_raising();
    assert!(eventually(is_announced).await);
    assert!(eventually(async || !is_announced().await).await);
    assert!(began.elapsed() >= LEASE, "the announcement ended after {:?}", began.elapsed());
    assert!(!rebuild.is_finished(), "the steps of the silent registry are repeated");
    rebuild.abort();
}

#[tokio::test]
async fn a_step_of_the_silent_standby_is_not_repeated() {
    for step in [SilentStep::Begin, SilentStep::Journal] {
        let node = Node::start(BucketMode::Ledger).await;
        node.standby.fall_silent(step, [bucket(1), bucket(2)]);
        let rebuilt = tokio::time::timeout(2 * LEASE, node.rebuild()).await;
        let rebuilt = rebuilt.unwrap_or_else(|_| panic!("{step:?} was repeated")).expect("no panic");
        assert!(rebuilt.is_err_and(|error| super::is_silence(&error)), "{step:?}");
        assert_eq!(node.standby.silences.load(SeqCst), 2, "once for each bucket at {step:?}");
    }
}

#[tokio::test]
async fn a_step_of_the_silent_configured_registry_is_repeated() {
    for step in [SilentStep::Begin, SilentStep::Journal, SilentStep::Clear] {
        let node = Node::start(BucketMode::Registry).await;
        node.main.fall_silent(step, [bucket(1), bucket(2)]);
        let rebuild = node.rebuild();
        assert!(eventually(async || node.main.silences.load(SeqCst) > 4).await, "{step:?}");
        node.main.fall_silent(step, []);
        let rebuilt = tokio::time::timeout(WAIT_MAX, rebuild).await.expect("an end");
        rebuilt.expect("no panic").expect("a rebuild");
    }
}

#[tokio::test]
async fn the_locks_of_a_server_end_with_the_work_on_the_server() {
    let node = Node::start(BucketMode::Registry).await;
    node.main.fall_silent(SilentStep::Clear, [bucket(2)]);
    let rebuild = node.rebuild();
    assert!(eventually(async || node.main.silences.load(SeqCst) > 0).await);
    assert!(eventually(async || node.lockable().await == [bucket(1)]).await);
    assert!(!rebuild.is_finished(), "the other server is silent");
    node.main.fall_silent(SilentStep::Clear, []);
    rebuild.await.expect("no panic").expect("a rebuild");
    assert_eq!(node.lockable().await, [bucket(1), bucket(2)]);
}

#[tokio::test]
async fn a_bucket_that_needs_no_rebuild_is_unlocked_before_the_work_on_the_rest() {
    let node = Node::start(BucketMode::Registry).await;
    let raised_meanwhile = node.row(bucket(1));
    let raise = EpochRaise {
        bucket: bucket(1),
        seen: raised_meanwhile.epoch,
        next: epoch_after(raised_meanwhile.epoch, 1),
    };
    let (ledger, id) = (&node.rebuilder.ledger, node.rebuilder.membership.id());
    ledger.raise(id, &[raise], BucketMode::Registry, None).await.expect("a raise");
    node.main.fall_silent(SilentStep::Begin, [bucket(2)]);
    let rebuild = node.rebuild();
    assert!(eventually(async || node.main.silences.load(SeqCst) > 0).await);
    assert_eq!(node.lockable().await, [bucket(1)]);
    rebuild.abort();
}

#[tokio::test]
async fn a_reading_that_began_before_the_raise_is_no_reading_of_the_raise() {
    let node = Node::start(BucketMode::Registry).await;
    let raised_at = HostInstant::now();
    let lease = Arc::clone(&node.rebuilder.lease);
    let mut later = Box::pin(lease.read_since(raised_at));
    assert!(later.as_mut().now_or_never().is_none());
    let rows = lease.rows().to_vec();
    lease.confirm(raised_at - Duration::from_millis(1), Vec::new(), rows.clone());
    assert!(later.as_mut().now_or_never().is_none());
    lease.confirm(raised_at, Vec::new(), rows);
    assert!(later.now_or_never().is_some());
}
