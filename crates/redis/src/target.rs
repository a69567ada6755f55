//! The target of a link: a fixed address, or a primary found through Sentinels.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisResult};

use crate::connect::connect;
use crate::error::not_reached;
use crate::settings::{Address, Login, ServerSettings};

/// Time limit for a Sentinel's answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The target of a link.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A server at a fixed address.
    Fixed(Address),
    /// The server named by the Sentinels as the primary `name`.
    Primary { sentinels: Vec<Address>, name: String },
}

impl fmt::Display for Target {
    /// Writes the target for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::Primary { name, .. } => write!(f, "the primary {name} of the Sentinels"),
        }
    }
}

impl Target {
    /// Returns the current address of the target.
    pub(crate) async fn address(&self, settings: &ServerSettings) -> RedisResult<Address> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::Primary { sentinels, name } => primary(settings, sentinels, name).await,
        }
    }
}

/// A primary as known to the Sentinels. The greatest is the current primary: the one that most Sentinels name, and among
/// equals the one of the latest failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// The number of Sentinels that name the primary.
    votes: usize,
    /// The number of the failover that made the primary: the greatest known to these Sentinels.
    config_epoch: u64,
}

/// A Sentinel's answer.
struct Named {
    address: Address,
    /// The number of the failover that made the primary; 0 if the Sentinel does not tell.
    config_epoch: u64,
}

/// Returns the primary's address, as named by most of the answering Sentinels. In a tie the latest failover decides.
async fn primary(settings: &ServerSettings, sentinels: &[Address], name: &str) -> RedisResult<Address> {
    let mut named = HashMap::<Address, Standing>::new();
    let mut failed = (ErrorKind::EmptySentinelList, "no Sentinel is known").into();
    for answer in join_all(sentinels.iter().map(|sentinel| ask(settings, sentinel, name))).await {
        match answer {
            Ok(Some(Named { address, config_epoch })) => {
                let standing = named.entry(address).or_default();
                standing.votes += 1;
                standing.config_epoch = standing.config_epoch.max(config_epoch);
            }
            Ok(None) => {
                failed = (ErrorKind::MasterNameNotFoundBySentinel, "a Sentinel knows no such primary").into()
            }
            Err(error) => failed = error,
        }
    }
    named.into_iter().max_by_key(|&(_, standing)| standing).map(|(address, _)| address).ok_or(failed)
}

/// Asks a Sentinel for the primary. `None` if the Sentinel knows no primary `name`.
async fn ask(settings: &ServerSettings, sentinel: &Address, name: &str) -> RedisResult<Option<Named>> {
    let asked = async {
        let mut connection = connect_to_sentinel(settings, sentinel).await?;
        let mut address = redis::cmd("SENTINEL");
        address.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let told: Option<(String, u16)> = address.query_async(&mut connection).await?;
        let Some((host, port)) = told else { return Ok(None) };
        let mut state = redis::cmd("SENTINEL");
        state.arg("MASTER").arg(name);
        // A user who may not ask for more than the address is enough while the Sentinels agree.
        let state: HashMap<String, String> = state.query_async(&mut connection).await.unwrap_or_default();
        let config_epoch = state.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or_default();
        Ok(Some(Named { address: Address { host, port }, config_epoch }))
    };
    let asked = tokio::time::timeout(ANSWER_MAX, asked).await;
    asked.map_err(|_| not_reached("a Sentinel does not answer"))?
}

/// Connects to a Sentinel by the Sentinels' own login if set. Otherwise tries the servers' login, then no
/// login for a Sentinel without passwords.
async fn connect_to_sentinel(
    settings: &ServerSettings,
    sentinel: &Address,
) -> RedisResult<MultiplexedConnection> {
    if let Some(login) = &settings.sentinel_login {
        return connect(&settings.with_login(login.clone()), sentinel).await;
    }
    match connect(settings, sentinel).await {
        Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
            connect(&settings.with_login(Login::default()), sentinel).await
        }
        other => other,
    }
}
