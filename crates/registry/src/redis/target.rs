//! Where a link leads.

use redis::{ErrorKind, RedisResult};

use super::connect::connect;
use super::settings::{Address, Settings};

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
    pub(super) async fn address(&self, settings: &Settings) -> RedisResult<Address> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::Primary { sentinels, name } => primary(settings, sentinels, name).await,
        }
    }
}

/// The primary, as the first Sentinel has it that answers.
async fn primary(settings: &Settings, sentinels: &[Address], name: &str) -> RedisResult<Address> {
    let mut failed = (ErrorKind::EmptySentinelList, "no Sentinel is known").into();
    for sentinel in sentinels {
        match ask(settings, sentinel, name).await {
            Ok(Some((host, port))) => return Ok(Address { host, port }),
            Ok(None) => {
                failed = (ErrorKind::MasterNameNotFoundBySentinel, "a Sentinel knows no such primary").into()
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn ask(settings: &Settings, sentinel: &Address, name: &str) -> RedisResult<Option<(String, u16)>> {
    let mut connection = connect(settings, sentinel).await?;
    redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(&mut connection).await
}
