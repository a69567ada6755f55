use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{Misfit, Networks, within};

/// `[server]`: how the server is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address to listen on; port 0 takes a free one. Default `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// The proxies in front whose word on a client's address is taken: networks or addresses. Default: none.
    pub trusted_proxies: Networks,
    /// The header that they say it in; the other one counts for nothing. Default `x-forwarded-for`.
    pub proxy_header: ProxyHeader,
    /// How long one request may take before it is answered 503, in seconds: 1 to 300. Default 30.
    pub request_timeout_seconds: u64,
    /// How long a shutdown waits for requests under way, in seconds: 0 to 300. Default 20.
    pub shutdown_timeout_seconds: u64,
}

/// Where a proxy says whom it speaks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            trusted_proxies: Networks::default(),
            proxy_header: ProxyHeader::default(),
            request_timeout_seconds: 30,
            shutdown_timeout_seconds: 20,
        }
    }
}

impl ServerSettings {
    pub(super) fn check(&self) -> Result<(), Misfit> {
        within(
            "server.request_timeout_seconds",
            self.request_timeout_seconds,
            1..=300,
            "want 1 to 300 seconds",
        )?;
        within(
            "server.shutdown_timeout_seconds",
            self.shutdown_timeout_seconds,
            0..=300,
            "want 0 to 300 seconds",
        )
    }
}
