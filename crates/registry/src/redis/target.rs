//! Where a link leads.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisResult};

use super::connect::connect;
use super::link::not_reached;
use super::settings::{Address, Login, ServerSettings};

/// How long a Sentinel may take to answer: those who do are waited for no longer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Where a link leads.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// To one server.
    Fixed(Address),
    /// To whichever server Sentinels call the primary of this name.
    Primary { sentinels: Vec<Address>, name: String },
}

impl Target {
    /// Where that is now.
    pub(super) async fn address(&self, settings: &ServerSettings) -> RedisResult<Address> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::Primary { sentinels, name } => primary(settings, sentinels, name).await,
        }
    }
}

/// The primary, as most of the Sentinels have it that answer.
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

/// What one Sentinel says.
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

/// Some have a password of their own, some that of the servers, and some none.
async fn connect_to_sentinel(
    settings: &ServerSettings,
    sentinel: &Address,
) -> RedisResult<MultiplexedConnection> {
    if let Some(login) = &settings.sentinel_login {
        return connect(&settings.known_as(login.clone()), sentinel).await;
    }
    match connect(settings, sentinel).await {
        Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
            connect(&settings.known_as(Login::default()), sentinel).await
        }
        other => other,
    }
}
