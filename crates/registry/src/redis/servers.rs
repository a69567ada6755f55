//! The servers, and this node's ways to them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::PubSub;
use redis::{Cmd, FromRedisValue, RedisResult, Value};

use super::cluster::Cluster;
use super::connect;
use super::link::{Link, Up, is_cut_off, is_moved};
use super::script::Script;
use super::settings::{Deployment, ServerSettings};
use super::slot::Slot;
use super::target::Target;

/// How often a call is sent on to where its slot has moved to, or is said to.
const MOVES_MAX: usize = 3;

/// Whether a call is made again whose connection was lost before its answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    /// Once. What is done twice is as if it were done once.
    WhenCutOff,
}

/// The servers, and this node's ways to them, which clones share: one connection to each server, used by all at once and
/// made again for ever.
#[derive(Clone, Debug)]
pub struct Servers {
    settings: Arc<ServerSettings>,
    ways: Ways,
}

#[derive(Clone, Debug)]
enum Ways {
    /// All is on one server.
    One(Arc<Link>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// These servers. Each is reached as soon as it can be. Must be called in a runtime.
    pub fn new(settings: ServerSettings) -> Self {
        Self::over(Arc::new(settings))
    }

    /// Other connections to the same servers. Must be called in the runtime that is to use them.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::over(Arc::clone(&self.settings))
    }

    fn over(settings: Arc<ServerSettings>) -> Self {
        let one = |target| Ways::One(Link::new(Arc::clone(&settings), target));
        let ways = match &settings.deployment {
            Deployment::Standalone(address) => one(Target::Fixed(address.clone())),
            Deployment::Sentinel { sentinels, primary } => {
                one(Target::Primary { sentinels: sentinels.clone(), name: primary.clone() })
            }
            Deployment::Cluster(nodes) => {
                Ways::Cluster(Arc::new(Cluster::new(Arc::clone(&settings), nodes.clone())))
            }
        };
        Self { settings, ways }
    }

    /// Whether all is on one server.
    pub(super) fn is_one(&self) -> bool {
        matches!(self.ways, Ways::One(_))
    }

    /// What the server that has a key answers to a command.
    pub async fn query<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> RedisResult<T> {
        let (_, value) = self.ask(Slot::of(key), None, Again::Never, |_| Cow::Borrowed(command)).await?;
        Ok(T::from_redis_value(value)?)
    }

    /// What the server that has a script's keys answers to a [call](Script::call) of it.
    pub async fn run<T: FromRedisValue>(&self, key: &str, script: &Script, call: &Cmd) -> RedisResult<T> {
        let (_, value) = self.ask(Slot::of(key), Some(script), Again::Never, |_| Cow::Borrowed(call)).await?;
        Ok(T::from_redis_value(value)?)
    }

    /// A connection on which messages are heard, to one of the servers: of a cluster, any tells what any is told.
    pub async fn pubsub(&self) -> RedisResult<PubSub> {
        let address = match &self.ways {
            Ways::One(link) => link.address().await?,
            Ways::Cluster(cluster) => cluster.any_address().await?,
        };
        connect::pubsub(&self.settings, &address).await
    }

    /// Why Redis would end sessions by itself, for each server that would: only if it never evicts a key is it fit for
    /// seats. Servers that are not reached within `patience` are left out.
    pub async fn unfit(&self, patience: Duration) -> Vec<String> {
        let mut unfit = Vec::new();
        for link in self.links(patience).await {
            if let Ok(Ok(up)) = tokio::time::timeout(patience, link.up()).await
                && let Ok(Some(why)) = connect::unfit(&mut up.connection()).await
            {
                unfit.push(why);
            }
        }
        unfit
    }

    /// Sends a command to the server that has a slot, and loads its script there if need be. The command may depend on
    /// which server that is. Says who answered.
    pub(super) async fn ask<'c>(
        &self,
        slot: Slot,
        script: Option<&Script>,
        again: Again,
        command: impl Fn(&Up) -> Cow<'c, Cmd>,
    ) -> RedisResult<(Arc<Up>, Value)> {
        let (mut moves, mut again) = (0, again);
        loop {
            let link = self.link(slot).await?;
            let up = link.up().await?;
            match link.run(&up, script, &command(&up)).await {
                Ok(value) => return Ok((up, value)),
                // It was not done.
                Err(error) if is_moved(&error) && moves < MOVES_MAX => moves += 1,
                // It may have been done.
                Err(error) if is_cut_off(&error) && again == Again::WhenCutOff => again = Again::Never,
                Err(error) => return Err(error),
            }
            if let Ways::Cluster(cluster) = &self.ways {
                cluster.look_again().await;
            }
        }
    }

    /// The way to every server, once one is known.
    pub(super) async fn links(&self, patience: Duration) -> Vec<Arc<Link>> {
        match &self.ways {
            Ways::One(link) => vec![Arc::clone(link)],
            Ways::Cluster(cluster) => cluster.links(patience).await,
        }
    }

    /// The way to the server that has a slot, if that is known by now.
    pub(super) fn link_now(&self, slot: Slot) -> Option<Arc<Link>> {
        match &self.ways {
            Ways::One(link) => Some(Arc::clone(link)),
            Ways::Cluster(cluster) => cluster.link_now(slot),
        }
    }

    /// The way to the server that has a slot, once that is known.
    pub(super) async fn link(&self, slot: Slot) -> RedisResult<Arc<Link>> {
        match &self.ways {
            Ways::One(link) => Ok(Arc::clone(link)),
            Ways::Cluster(cluster) => cluster.link(slot).await,
        }
    }
}
