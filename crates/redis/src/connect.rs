//! New connections to a server, and the identity of the server's memory.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates,
};

use crate::settings::{Address, Password, ServerSettings, Tls};

/// Time limit for a new connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Characters taken from each of the two ids in a server's identity.
const IDENTITY_PART_CHARS: usize = 20;

/// The `maxmemory-policy` of a server fit for seats: a server with full memory refuses writes and never
/// evicts a session.
const POLICY_FIT: &str = "noeviction";

/// Connects to a server. Reads the password and the certificates anew, so that a rotation needs no restart of
/// the node.
pub(crate) async fn connect(
    settings: &ServerSettings,
    address: &Address,
) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_MAX))
        .set_response_timeout(Some(settings.response_timeout));
    client(settings, address)?.get_multiplexed_async_connection_with_config(&config).await
}

/// Connects to a server for published messages.
pub(crate) async fn pubsub(settings: &ServerSettings, address: &Address) -> RedisResult<PubSub> {
    client(settings, address)?.get_async_pubsub().await
}

fn client(settings: &ServerSettings, address: &Address) -> RedisResult<Client> {
    let Address { host, port } = address.clone();
    let addr = match settings.tls {
        None => ConnectionAddr::Tcp(host, port),
        Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    };
    let mut redis = RedisConnectionInfo::default();
    if let Some(username) = &settings.login.username {
        redis = redis.set_username(username);
    }
    if let Some(password) = password(&settings.login.password)? {
        redis = redis.set_password(password);
    }
    let tcp = TcpSettings::default().set_nodelay(true);
    let info = addr.into_connection_info()?.set_redis_settings(redis).set_tcp_settings(tcp);
    match &settings.tls {
        None => Client::open(info),
        Some(tls) => Client::build_with_tls(info, certificates(tls)?),
    }
}

fn password(from: &Password) -> RedisResult<Option<String>> {
    Ok(match from {
        Password::None => None,
        Password::Text(text) => Some(text.clone()),
        Password::File(path) => {
            let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            Some(text.trim_end_matches(['\n', '\r']).to_owned())
        }
    })
}

fn certificates(tls: &Tls) -> RedisResult<TlsCertificates> {
    let read = |path: &Path| fs::read(path).map_err(|error| unreadable(path, &error));
    let client_tls = match &tls.client {
        None => None,
        Some((cert, key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
    };
    let root_cert = tls.ca.as_deref().map(read).transpose()?;
    Ok(TlsCertificates { client_tls, root_cert })
}

fn unreadable(path: &Path, error: &io::Error) -> RedisError {
    (ErrorKind::InvalidClientConfig, "a file cannot be read", format!("{}: {error}", path.display())).into()
}

/// Returns the reason why the server would evict sessions, `None` if the server never evicts.
pub(crate) async fn unfit(connection: &mut MultiplexedConnection) -> RedisResult<Option<String>> {
    Ok(unfit_by(&info(connection, &["memory"]).await?))
}

/// Returns the reason why the server would evict sessions, from the text of `INFO memory`.
pub(crate) fn unfit_by(info: &str) -> Option<String> {
    let policy = field(info, "maxmemory_policy").unwrap_or(POLICY_FIT);
    (policy != POLICY_FIT).then(|| format!("its maxmemory-policy is {policy}, and must be {POLICY_FIT}"))
}

/// Reads the identity of the server's memory: `run_id` and `master_replid2`. `Err` if the server is a
/// replica.
///
/// `run_id` changes at every start of the process, so after a restart with an empty or an old memory.
/// `master_replid2` changes when a server becomes a primary, so when its memory may be the copy of a replica
/// that lagged. For example, a primary that was demoted, synchronised from its successor and promoted again
/// keeps its `run_id` and gets a new `master_replid2`.
///
/// `master_replid` is not a part: it also changes on a primary with unchanged memory, when the first replica
/// attaches and `repl-backlog-ttl` after the last replica has left.
pub(crate) async fn identity(connection: &mut MultiplexedConnection) -> RedisResult<Arc<str>> {
    let text = info(connection, &["server", "replication"]).await?;
    let part = |name| {
        let value = field(&text, name).ok_or((ErrorKind::UnexpectedReturnType, "INFO tells too little"))?;
        Ok::<_, RedisError>(value.chars().take(IDENTITY_PART_CHARS).collect::<String>())
    };
    if part("role")? != "master" {
        return Err((ErrorKind::Io, "the server is a replica").into());
    }
    Ok(format!("{}/{}", part("run_id")?, part("master_replid2")?).into())
}

/// Reads sections of a server's `INFO`.
pub(crate) async fn info(connection: &mut MultiplexedConnection, sections: &[&str]) -> RedisResult<String> {
    redis::cmd("INFO").arg(sections).query_async(connection).await
}

/// Returns a field of an `INFO` text.
pub(crate) fn field<'t>(info: &'t str, name: &str) -> Option<&'t str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}
