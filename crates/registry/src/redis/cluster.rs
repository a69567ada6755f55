//! A cluster: its masters, and the slots that each of them has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue as _, RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::connect::{connect, field};
use super::link::{CONNECTION_WAIT_MAX, Link, not_reached};
use super::settings::{Address, ServerSettings};
use super::slot::Slot;
use super::target::Target;

/// How often the masters are asked who has which slot, if nothing makes it urgent.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time between two times that they are asked.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How long a node of the cluster may take to tell.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// The masters and their slots, kept up to date.
#[derive(Debug)]
pub(super) struct Cluster {
    layout: watch::Sender<Layout>,
    look: Arc<Notify>,
    watcher: JoinHandle<()>,
}

/// Who has which slots.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// Sorted, and no slot twice.
    ranges: Arc<[Range]>,
    links: HashMap<Address, Arc<Link>>,
}

#[derive(Clone, Debug)]
struct Range {
    first: Slot,
    last: Slot,
    link: Arc<Link>,
}

/// What a node says of the cluster: how new that is, and who has which slots.
struct Told {
    epoch: u64,
    ranges: Vec<(Slot, Slot, Address)>,
}

impl Cluster {
    /// The cluster that these nodes belong to.
    pub(super) fn new(settings: Arc<ServerSettings>, seeds: Vec<Address>) -> Self {
        let (layout, look) = (watch::Sender::new(Layout::default()), Arc::new(Notify::new()));
        let watcher = tokio::spawn(watch_over(settings, seeds, layout.clone(), Arc::clone(&look)));
        Self { layout, look, watcher }
    }

    /// The way to the master that has a slot, if it is known by now.
    pub(super) fn link_now(&self, slot: Slot) -> Option<Arc<Link>> {
        self.layout.borrow().link(slot)
    }

    /// The way to the master that has a slot, once it is known.
    pub(super) async fn link(&self, slot: Slot) -> RedisResult<Arc<Link>> {
        if let Some(link) = self.link_now(slot) {
            return Ok(link);
        }
        let mut layout = self.layout.subscribe();
        let known = layout.wait_for(|layout| layout.link(slot).is_some());
        match tokio::time::timeout(CONNECTION_WAIT_MAX, known).await {
            Ok(Ok(layout)) => layout.link(slot),
            Ok(Err(_)) | Err(_) => None,
        }
        .ok_or_else(|| not_reached("nobody says which master has the slot"))
    }

    /// Waits until the masters were asked anew.
    pub(super) async fn look_again(&self) {
        let mut layout = self.layout.subscribe();
        self.look.notify_one();
        // If nobody says, what was known before is tried once more.
        let _ = tokio::time::timeout(CONNECTION_WAIT_MAX, layout.changed()).await;
    }

    /// The way to every master, once one is known.
    pub(super) async fn links(&self, patience: Duration) -> Vec<Arc<Link>> {
        let mut layout = self.layout.subscribe();
        let known = layout.wait_for(|layout| !layout.links.is_empty());
        match tokio::time::timeout(patience, known).await {
            Ok(Ok(layout)) => layout.links.values().cloned().collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// Where a master is that is reached.
    pub(super) async fn any_address(&self) -> RedisResult<Address> {
        let links = self.links(CONNECTION_WAIT_MAX).await;
        let reached = links.iter().find(|link| link.up_now().is_some()).or(links.first());
        match reached {
            Some(link) => link.address().await,
            None => Err(not_reached("no master of the cluster is known")),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl Layout {
    fn link(&self, slot: Slot) -> Option<Arc<Link>> {
        let after = self.ranges.partition_point(|range| range.first <= slot);
        let range = after.checked_sub(1).and_then(|place| self.ranges.get(place))?;
        (slot <= range.last).then(|| Arc::clone(&range.link))
    }

    /// What was told; the ways to masters that stay are kept.
    fn updated(&self, settings: &Arc<ServerSettings>, mut told: Told) -> Self {
        told.ranges.sort_unstable_by_key(|&(first, ..)| first);
        let mut links = HashMap::new();
        let ranges = told.ranges.into_iter().map(|(first, last, address)| {
            let link = links.entry(address).or_insert_with_key(|address| match self.links.get(address) {
                Some(link) => Arc::clone(link),
                None => Link::new(Arc::clone(settings), Target::Fixed(address.clone())),
            });
            Range { first, last, link: Arc::clone(link) }
        });
        let ranges = ranges.collect();
        Self { ranges, links }
    }
}

/// Asks the masters for ever, or who is known as a node of the cluster while none of them tells.
async fn watch_over(
    settings: Arc<ServerSettings>,
    seeds: Vec<Address>,
    layout: watch::Sender<Layout>,
    look: Arc<Notify>,
) {
    loop {
        let known = layout.borrow().clone();
        let mut told = newest(join_all(known.links.values().map(|link| told_by_link(link))).await);
        if told.is_none() {
            told = newest(join_all(seeds.iter().map(|seed| told_by_seed(&settings, seed))).await);
        }
        if let Some(told) = told {
            layout.send_replace(known.updated(&settings, told));
        }
        tokio::time::sleep(LOOK_INTERVAL_MIN).await;
        // Whether it is time or urgent makes no difference.
        let _ = tokio::time::timeout(LOOK_INTERVAL, look.notified()).await;
    }
}

/// Where nodes disagree, the one counts that has heard of most changes.
fn newest(told: Vec<RedisResult<Told>>) -> Option<Told> {
    let told = told.into_iter().filter_map(|told| {
        told.inspect_err(|error| {
            tracing::debug!(error = error as &dyn std::error::Error, "a node does not tell of its cluster");
        })
        .ok()
    });
    told.max_by_key(|told| told.epoch)
}

async fn told_by_link(link: &Link) -> RedisResult<Told> {
    let up = link.up_now().ok_or_else(|| not_reached("the master cannot be reached"))?;
    told_by(up.connection(), &link.address().await?).await
}

async fn told_by_seed(settings: &ServerSettings, seed: &Address) -> RedisResult<Told> {
    told_by(connect(settings, seed).await?, seed).await
}

async fn told_by(mut connection: MultiplexedConnection, at: &Address) -> RedisResult<Told> {
    let asked = async {
        let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await?;
        let slots: Vec<Value> = redis::cmd("CLUSTER").arg("SLOTS").query_async(&mut connection).await?;
        Ok::<_, RedisError>((info, slots))
    };
    let asked = tokio::time::timeout(LOOK_MAX, asked).await;
    let (info, slots) = asked.map_err(|_| not_reached("a node of the cluster does not answer"))??;
    let epoch = field(&info, "cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Ok(Told { epoch, ranges: slots.into_iter().filter_map(|range| range_of(range, at)).collect() })
}

/// A range of slots: first, last, master, replicas. A node: host, port, and more. A host that is not told is the one
/// that was asked.
fn range_of(told: Value, asked: &Address) -> Option<(Slot, Slot, Address)> {
    let Value::Array(range) = told else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &range[..] else { return None };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let told = String::from_redis_value(host.clone()).ok().filter(|host| !host.is_empty() && host != "?");
    let host = told.unwrap_or_else(|| asked.host.clone());
    let number = |number: i64| u16::try_from(number).ok();
    Some((Slot(number(*first)?), Slot(number(*last)?), Address { host, port: number(*port)? }))
}
