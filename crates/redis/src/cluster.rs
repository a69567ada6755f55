//! A cluster: its masters, and the hash slots of each master.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue as _, RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::connect::{connect, field};
use crate::error::not_reached;
use crate::link::{CONNECTION_WAIT_MAX, Link};
use crate::settings::{Address, ServerSettings};
use crate::slot::Slot;
use crate::target::Target;

/// Interval of asking the masters for the layout. A call to the wrong master shortens the interval.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval of asking for the layout.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Time limit for reading a node's view of the cluster.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// The masters and their slots, kept up to date by a background task.
#[derive(Debug)]
pub(crate) struct Cluster {
    layout: watch::Sender<Layout>,
    look: Arc<Notify>,
    watcher: JoinHandle<()>,
}

/// The layout of a cluster: the slots of every master.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// Sorted and disjoint.
    ranges: Arc<[Range]>,
    links: HashMap<Address, Arc<Link>>,
}

#[derive(Clone, Debug)]
struct Range {
    first: Slot,
    last: Slot,
    link: Arc<Link>,
}

/// The cluster as seen by a node: the epoch, and the master of each range of slots.
struct View {
    epoch: u64,
    ranges: Vec<(Slot, Slot, Address)>,
}

impl Cluster {
    /// Follows the cluster of the seeds. Must be called in a runtime.
    pub(crate) fn new(settings: Arc<ServerSettings>, seeds: Vec<Address>) -> Self {
        let (layout, look) = (watch::Sender::new(Layout::default()), Arc::new(Notify::new()));
        let watcher = tokio::spawn(watch_over(settings, seeds, layout.clone(), Arc::clone(&look)));
        Self { layout, look, watcher }
    }

    /// Returns the link to the master of a slot, `None` while the master is unknown.
    pub(crate) fn link_now(&self, slot: Slot) -> Option<Arc<Link>> {
        self.layout.borrow().link(slot)
    }

    /// Waits up to a second for the link to the master of a slot.
    pub(crate) async fn link(&self, slot: Slot) -> RedisResult<Arc<Link>> {
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

    /// Requests the layout from the masters at once, and waits up to a second for a new layout.
    pub(crate) async fn look_again(&self) {
        let mut layout = self.layout.subscribe();
        self.look.notify_one();
        // Without a new layout the caller retries with the old layout.
        let _ = tokio::time::timeout(CONNECTION_WAIT_MAX, layout.changed()).await;
    }

    /// Returns the link to every master, after at least one master is known. Empty after `patience`.
    pub(crate) async fn links(&self, patience: Duration) -> Vec<Arc<Link>> {
        let mut layout = self.layout.subscribe();
        let known = layout.wait_for(|layout| !layout.links.is_empty());
        match tokio::time::timeout(patience, known).await {
            Ok(Ok(layout)) => layout.links.values().cloned().collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// Returns the address of a master, preferably a connected master.
    pub(crate) async fn any_address(&self) -> RedisResult<Address> {
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

    /// Returns the layout of a view. Masters present before and after keep their links.
    fn updated(&self, settings: &Arc<ServerSettings>, mut view: View) -> Self {
        view.ranges.sort_unstable_by_key(|&(first, ..)| first);
        let mut links = HashMap::new();
        let ranges = view.ranges.into_iter().map(|(first, last, address)| {
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

/// Asks the masters for the layout for ever, and asks the seeds while no master answers.
async fn watch_over(
    settings: Arc<ServerSettings>,
    seeds: Vec<Address>,
    layout: watch::Sender<Layout>,
    look: Arc<Notify>,
) {
    loop {
        let known = layout.borrow().clone();
        let mut view = newest(join_all(known.links.values().map(|link| view_by_link(link))).await);
        if view.is_none() {
            view = newest(join_all(seeds.iter().map(|seed| view_by_seed(&settings, seed))).await);
        }
        if let Some(view) = view {
            layout.send_replace(known.updated(&settings, view));
        }
        tokio::time::sleep(LOOK_INTERVAL_MIN).await;
        // Wakes after the interval, or early by `look_again`.
        let _ = tokio::time::timeout(LOOK_INTERVAL, look.notified()).await;
    }
}

/// Returns the view of the highest epoch, as nodes may disagree.
fn newest(views: Vec<RedisResult<View>>) -> Option<View> {
    let views = views.into_iter().filter_map(|view| {
        view.inspect_err(|error| {
            tracing::debug!(
                error = error as &dyn std::error::Error,
                "a node did not report the cluster layout"
            );
        })
        .ok()
    });
    views.max_by_key(|view| view.epoch)
}

async fn view_by_link(link: &Link) -> RedisResult<View> {
    let up = link.up_now().ok_or_else(|| not_reached("the master cannot be reached"))?;
    view_of(up.multiplexed(), &link.address().await?).await
}

async fn view_by_seed(settings: &ServerSettings, seed: &Address) -> RedisResult<View> {
    view_of(connect(settings, seed).await?, seed).await
}

async fn view_of(mut connection: MultiplexedConnection, at: &Address) -> RedisResult<View> {
    let asked = async {
        let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await?;
        let slots: Vec<Value> = redis::cmd("CLUSTER").arg("SLOTS").query_async(&mut connection).await?;
        Ok::<_, RedisError>((info, slots))
    };
    let asked = tokio::time::timeout(LOOK_MAX, asked).await;
    let (info, slots) = asked.map_err(|_| not_reached("a node of the cluster does not answer"))??;
    let epoch = field(&info, "cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Ok(View { epoch, ranges: slots.into_iter().filter_map(|range| range_of(range, at)).collect() })
}

/// Parses an entry of `CLUSTER SLOTS`: first slot, last slot, master, replicas. A node is host, port, and
/// further fields. An empty host means the queried host.
fn range_of(told: Value, asked: &Address) -> Option<(Slot, Slot, Address)> {
    let Value::Array(range) = told else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &range[..] else { return None };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let told = String::from_redis_value(host.clone()).ok().filter(|host| !host.is_empty() && host != "?");
    let host = told.unwrap_or_else(|| asked.host.clone());
    let number = |number: i64| u16::try_from(number).ok();
    Some((Slot(number(*first)?), Slot(number(*last)?), Address { host, port: number(*port)? }))
}
