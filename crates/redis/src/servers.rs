//! The Redis servers, and the node's links to them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::PubSub;
use redis::{Cmd, FromRedisValue, RedisResult, Value};

use crate::cluster::Cluster;
use crate::connect;
use crate::error::{is_cut_off, is_moved};
use crate::link::{Connection, Link};
use crate::script::Script;
use crate::settings::{Deployment, ServerSettings};
use crate::slot::Slot;
use crate::target::Target;

/// Most redirections of a call whose slot moves.
const MOVES_MAX: usize = 3;

/// The retry policy of a call after the loss of the connection before the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The call is sent once.
    Never,
    /// The call is sent once more. For idempotent calls only.
    WhenCutOff,
}

/// The reply to a call.
#[derive(Debug)]
pub struct Answer {
    /// The value of the reply.
    pub value: Value,
    /// The connection of the reply.
    pub connection: Arc<Connection>,
    /// `true` if the call was sent more than once, so the reply may reflect the effect of an earlier attempt.
    pub is_repeated: bool,
}

/// The Redis servers, and the node's links to them. Clones share the links: a single connection to each
/// server carries every call.
#[derive(Clone, Debug)]
pub struct Servers {
    settings: Arc<ServerSettings>,
    links: Links,
}

#[derive(Clone, Debug)]
enum Links {
    One(Arc<Link>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Starts to connect to the servers. Must be called in a runtime.
    pub fn new(settings: ServerSettings) -> Self {
        Self::over(Arc::new(settings))
    }

    /// Returns a separate set of connections to the servers. Must be called in the runtime that uses them.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::over(Arc::clone(&self.settings))
    }

    fn over(settings: Arc<ServerSettings>) -> Self {
        let one = |target| Links::One(Link::new(Arc::clone(&settings), target));
        let links = match &settings.deployment {
            Deployment::Standalone(address) => one(Target::Fixed(address.clone())),
            Deployment::Sentinel { sentinels, primary } => {
                one(Target::Primary { sentinels: sentinels.clone(), name: primary.clone() })
            }
            Deployment::Cluster(nodes) => {
                Links::Cluster(Arc::new(Cluster::new(Arc::clone(&settings), nodes.clone())))
            }
        };
        Self { settings, links }
    }

    /// Returns `true` if a single server has every key.
    pub fn is_one(&self) -> bool {
        matches!(self.links, Links::One(_))
    }

    /// Sends a command to the server of `key`, without a retry.
    pub async fn query<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> RedisResult<T> {
        let command = |_: &Connection| Cow::Borrowed(command);
        let answer = self.call(Slot::from_key(key), None, Retry::Never, command).await?;
        Ok(T::from_redis_value(answer.value)?)
    }

    /// Sends a [call](Script::call) of a script to the server of `key`, without a retry.
    pub async fn run<T: FromRedisValue>(&self, key: &str, script: &Script, call: &Cmd) -> RedisResult<T> {
        let command = |_: &Connection| Cow::Borrowed(call);
        let answer = self.call(Slot::from_key(key), Some(script), Retry::Never, command).await?;
        Ok(T::from_redis_value(answer.value)?)
    }

    /// Waits up to `patience` for the connection to the server of `key`. Returns `false` if no connection is there: a
    /// call would wait for a second, and fail.
    pub async fn is_connected(&self, key: &str, patience: Duration) -> bool {
        let connection = async { self.link(Slot::from_key(key)).await?.up().await };
        tokio::time::timeout(patience, connection).await.is_ok_and(|connected| connected.is_ok())
    }

    /// Connects to a server for published messages. In a cluster, every server receives every message.
    pub async fn pubsub(&self) -> RedisResult<PubSub> {
        let address = match &self.links {
            Links::One(link) => link.address().await?,
            Links::Cluster(cluster) => cluster.any_address().await?,
        };
        connect::pubsub(&self.settings, &address).await
    }

    /// Returns the reasons why servers are unfit for seats: a server that evicts keys would end sessions on
    /// its own. Servers not reached within `patience` are left out.
    pub async fn unfit(&self, patience: Duration) -> Vec<String> {
        let mut unfit = Vec::new();
        for link in self.links(patience).await {
            if let Ok(Ok(up)) = tokio::time::timeout(patience, link.up()).await
                && let Ok(Some(why)) = connect::unfit(&mut up.multiplexed()).await
            {
                unfit.push(why);
            }
        }
        unfit
    }

    /// Sends a command to the server of `slot`, loads `script` on demand, and follows the slot when the slot
    /// moves. `command` builds the command for each attempt, as it may depend on the server.
    pub async fn call<'c>(
        &self,
        slot: Slot,
        script: Option<&Script>,
        retry: Retry,
        command: impl Fn(&Connection) -> Cow<'c, Cmd>,
    ) -> RedisResult<Answer> {
        let (mut moves, mut cuts) = (0, 0);
        loop {
            let link = self.link(slot).await?;
            let connection = link.up().await?;
            match link.send(&connection, script, &command(&connection)).await {
                Ok(value) => return Ok(Answer { value, connection, is_repeated: moves + cuts > 0 }),
                // The call was not carried out.
                Err(error) if is_moved(&error) && moves < MOVES_MAX => moves += 1,
                // The call may have been carried out.
                Err(error) if is_cut_off(&error) && retry == Retry::WhenCutOff && cuts == 0 => cuts += 1,
                Err(error) => return Err(error),
            }
            if let Links::Cluster(cluster) = &self.links {
                cluster.look_again().await;
            }
        }
    }

    /// Returns the link to every server. In a cluster, waits up to `patience` for a known master.
    pub(crate) async fn links(&self, patience: Duration) -> Vec<Arc<Link>> {
        match &self.links {
            Links::One(link) => vec![Arc::clone(link)],
            Links::Cluster(cluster) => cluster.links(patience).await,
        }
    }

    /// Returns the link to the server of a slot, `None` while the server is unknown.
    pub fn link_now(&self, slot: Slot) -> Option<Arc<Link>> {
        match &self.links {
            Links::One(link) => Some(Arc::clone(link)),
            Links::Cluster(cluster) => cluster.link_now(slot),
        }
    }

    /// Waits up to a second for the link to the server of a slot.
    pub async fn link(&self, slot: Slot) -> RedisResult<Arc<Link>> {
        match &self.links {
            Links::One(link) => Ok(Arc::clone(link)),
            Links::Cluster(cluster) => cluster.link(slot).await,
        }
    }
}
