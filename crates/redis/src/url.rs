//! Parses server settings from a URL.

use std::str::FromStr;

use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _, RedisError, RedisResult};

use crate::settings::{Address, Deployment, Login, Password, ServerSettings, Tls};

/// Default ports of servers and of Sentinels.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Parses a URL of the form
///
/// - `redis://user:password@host:port`, a server
/// - `redis+sentinel://user:password@host:port,host:port/name`, the primary `name` behind Sentinels
/// - `redis+cluster://user:password@host:port,host:port`, a cluster, with some of its nodes
///
/// User, password and ports may be omitted. The scheme `rediss` instead of `redis` secures the connections by
/// TLS.
impl FromStr for ServerSettings {
    type Err = RedisError;

    fn from_str(text: &str) -> RedisResult<Self> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it is no URL"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let (secured, form) = match scheme.strip_prefix("rediss") {
            Some(form) => (true, form),
            None => (false, scheme.strip_prefix("redis").ok_or_else(|| wrong("it is not a Redis's"))?),
        };
        let port = if form == "+sentinel" { SENTINEL_PORT } else { PORT };
        let infos: Vec<_> =
            hosts.split(',').map(|host| info(&user, host, port)).collect::<RedisResult<_>>()?;
        let mut addresses: Vec<_> = infos.iter().map(address).collect::<RedisResult<_>>()?;
        let deployment = match (form, path) {
            ("", "" | "0") if addresses.len() == 1 => Deployment::Standalone(addresses.remove(0)),
            ("", _) => return Err(wrong("a server has one host, and its database is the first")),
            ("+cluster", "") => Deployment::Cluster(addresses),
            ("+sentinel", name) if !name.is_empty() && !name.contains('/') => {
                Deployment::Sentinel { sentinels: addresses, primary: name.to_owned() }
            }
            ("+sentinel", _) => return Err(wrong("Sentinels know the primary by a name")),
            _ => return Err(wrong("it is neither a server's nor Sentinels' nor a cluster's")),
        };
        let redis = infos.first().map(ConnectionInfo::redis_settings);
        let password = redis.and_then(|redis| redis.password());
        let login = Login {
            username: redis.and_then(|redis| redis.username()).map(str::to_owned),
            password: password.map_or(Password::None, |password| Password::Text(password.to_owned())),
        };
        Ok(Self { login, tls: secured.then(Tls::default), ..Self::new(deployment) })
    }
}

/// Parses a host, with the user.
fn info(user: &str, host: &str, port_usual: u16) -> RedisResult<ConnectionInfo> {
    // An IPv6 address in brackets contains colons as well.
    let has_port = host.rsplit_once(']').map_or(host, |(_, rest)| rest).contains(':');
    let port = if has_port { String::new() } else { format!(":{port_usual}") };
    format!("redis://{user}{host}{port}").into_connection_info()
}

fn address(info: &ConnectionInfo) -> RedisResult<Address> {
    if let ConnectionAddr::Tcp(host, port) = info.addr() {
        Ok(Address { host: host.clone(), port: *port })
    } else {
        Err(wrong("a server has a host"))
    }
}

fn wrong(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, "the URL of Redis cannot be used", why.to_owned()).into()
}

#[cfg(test)]
mod tests {
    use crate::*;

    fn read(text: &str) -> ServerSettings {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn a_server_is_read() {
        let server = read("rediss://ann:p%40ss@cache.example:7000");
        assert_eq!(server.deployment, Deployment::Standalone(at("cache.example", 7_000)));
        assert_eq!(server.login.username.as_deref(), Some("ann"));
        assert_eq!(server.login.password, Password::Text("p@ss".to_owned()));
        assert!(server.tls.is_some());
        let bare = read("redis://cache.example/");
        assert_eq!(bare.deployment, Deployment::Standalone(at("cache.example", 6_379)));
        assert_eq!((bare.login, bare.tls), (Login::default(), None));
    }

    #[test]
    fn sentinels_are_read() {
        let sentinels = vec![at("10.0.0.1", 26_379), at("10.0.0.2", 7_001)];
        let deployment = Deployment::Sentinel { sentinels, primary: "seats".to_owned() };
        let server = read("redis+sentinel://:secret@10.0.0.1,10.0.0.2:7001/seats");
        assert_eq!((server.deployment, server.login.username), (deployment, None));
        assert_eq!(server.login.password, Password::Text("secret".to_owned()));
    }

    #[test]
    fn a_cluster_is_read() {
        let server = read("rediss+cluster://a,b:7001,[::1]:7002");
        let nodes = vec![at("a", 6_379), at("b", 7_001), at("::1", 7_002)];
        assert_eq!((server.deployment, server.tls), (Deployment::Cluster(nodes), Some(Tls::default())));
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        for text in [
            "",
            "memory",
            "redis:",
            "http://a",
            "redis://",
            "redis://a,b",
            "redis://a/1",
            "redis://a:x",
            "redis+cluster://a/0",
            "redis+sentinel://a",
            "redis+sentinel://a/",
            "redis+other://a",
            "redis+cluster://a,",
        ] {
            assert!(text.parse::<ServerSettings>().is_err(), "{text}");
        }
    }
}
