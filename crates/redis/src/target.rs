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

/// Returns the primary's address, as named by most of the answering Sentinels.
async fn primary(settings: &ServerSettings, sentinels: &[Address], name: &str) -> RedisResult<Address> {
    let mut votes = HashMap::<Address, usize>::new();
    let mut failed = (ErrorKind::EmptySentinelList, "no Sentinel is known").into();
    for answer in join_all(sentinels.iter().map(|sentinel| ask(settings, sentinel, name))).await {
        match answer {
            Ok(Some((host, port))) => *votes.entry(Address { host, port }).or_default() += 1,
            Ok(None) => {
                failed = (ErrorKind::MasterNameNotFoundBySentinel, "a Sentinel knows no such primary").into()
            }
            Err(error) => failed = error,
        }
    }
    votes.into_iter().max_by_key(|&(_, votes)| votes).map(|(address, _)| address).ok_or(failed)
}

/// Asks a Sentinel for the primary's address. `None` if the Sentinel knows no primary `name`.
async fn ask(
    settings: &ServerSettings,
    sentinel: &Address,
    name: &str,
) -> RedisResult<Option<(String, u16)>> {
    let asked = async {
        let mut connection = connect_to_sentinel(settings, sentinel).await?;
        redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(&mut connection).await
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
