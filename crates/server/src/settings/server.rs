//! The section `[server]`: listener, TLS, trusted proxies, and limits of connections and requests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, Networks, Origins, within};

/// `[server]`: the listener, and limits of connections and requests.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address to listen on; port 0 takes a free port. An address beyond loopback logs a warning, unless
    /// `tls_cert_file` or `trusted_proxies` is set, because tokens then travel unencrypted. Default
    /// `127.0.0.1:8080`.
    #[schema(value_type = String)]
    pub listen: SocketAddr,
    /// The file with the server certificate, in PEM, followed by the intermediate certificates. Absent:
    /// connections are unencrypted. Requires `tls_key_file`. Changed files are read again within seconds; an
    /// invalid file is logged, and the old certificate stays in use.
    #[schema(value_type = Option<String>)]
    pub tls_cert_file: Option<PathBuf>,
    /// The file with the key of the certificate, in PEM.
    #[schema(value_type = Option<String>)]
    pub tls_key_file: Option<PathBuf>,
    /// The proxies trusted to name a client's address: addresses, and networks such as `10.0.0.0/8`; in a
    /// variable, separated by commas. Default: none.
    #[schema(value_type = String)]
    pub trusted_proxies: Networks,
    /// The header in which trusted proxies name the client: `x-forwarded-for` (default) or `forwarded`. The
    /// other header is ignored.
    #[schema(value_type = String)]
    pub proxy_header: ProxyHeader,
    /// The web pages whose scripts may use the API, by their origins: `https://app.example.com`, without a path, or `*` for
    /// every page. In a variable, separated by commas. Default: none.
    #[schema(value_type = String)]
    pub cors_origins: Origins,
    /// Time limit of a request, in seconds: 1 to 300. A slower request is answered 503. Default 30.
    pub request_timeout_seconds: u64,
    /// Time limit for the whole head of a request, and for the first request of a connection to begin, in
    /// seconds: 1 to 300. Default 10.
    pub header_timeout_seconds: u64,
    /// Time that an idle connection is kept for a further request, in seconds: 1 to 3,600. Default 75.
    pub keep_alive_seconds: u64,
    /// Time that a client may read no byte of its answer, in seconds: 1 to 3,600. Default 30.
    pub write_timeout_seconds: u64,
    /// Maximum size of a request's head, in bytes: 8,192 to 1,048,576. Default 32,768.
    pub header_bytes_max: usize,
    /// Maximum of connections; further connections wait: 1 to 1,000,000. Above nine tenths, idle connections
    /// are kept for 5 s at most. Default 20,000.
    pub connections_max: usize,
    /// Maximum of concurrent API requests; further requests are answered 503: 1 to 1,000,000. Default 4,096.
    pub requests_max: usize,
    /// Maximum of open event streams: 0 to 1,000,000. Default 10,000. Further streams are answered 503.
    pub event_streams_max: usize,
    /// Maximum of open event streams of one user: 1 to 1,000,000. Default 256. Further streams are answered 429. A
    /// caller with the scope `service` or `admin` may open half of `event_streams_max`.
    pub event_streams_per_user_max: usize,
    /// Longest wait of a shutdown for requests in progress, in seconds: 0 to 300. Default 20.
    pub shutdown_timeout_seconds: u64,
}

/// The header in which a proxy names its client.
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
            tls_cert_file: None,
            tls_key_file: None,
            trusted_proxies: Networks::default(),
            proxy_header: ProxyHeader::default(),
            cors_origins: Origins::default(),
            request_timeout_seconds: 30,
            header_timeout_seconds: 10,
            keep_alive_seconds: 75,
            write_timeout_seconds: 30,
            header_bytes_max: 32 * 1024,
            connections_max: 20_000,
            requests_max: 4_096,
            event_streams_max: 10_000,
            event_streams_per_user_max: 256,
            shutdown_timeout_seconds: 20,
        }
    }
}

impl ServerSettings {
    /// Returns the files of certificate and key; `None` if connections are unencrypted.
    pub(crate) fn tls_files(&self) -> Option<(&Path, &Path)> {
        Some((self.tls_cert_file.as_deref()?, self.tls_key_file.as_deref()?))
    }

    /// Returns the time limit of a request's body: half of the request's time. The other half is for the
    /// answer, so that a slow client does not look like a slow server.
    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds) / 2
    }

    pub(super) fn checks(&self) -> Vec<Checked> {
        let (hour, million) = ("want 1 to 3,600 seconds", "want 1 to 1,000,000");
        vec![
            self.check_tls(),
            within(
                "server.request_timeout_seconds",
                self.request_timeout_seconds,
                1..=300,
                "want 1 to 300 seconds",
            ),
            within(
                "server.header_timeout_seconds",
                self.header_timeout_seconds,
                1..=300,
                "want 1 to 300 seconds",
            ),
            within("server.keep_alive_seconds", self.keep_alive_seconds, 1..=3_600, hour),
            within("server.write_timeout_seconds", self.write_timeout_seconds, 1..=3_600, hour),
            within(
                "server.header_bytes_max",
                self.header_bytes_max as u64,
                8_192..=1_048_576,
                "want 8,192 to 1,048,576 bytes",
            ),
            within("server.connections_max", self.connections_max as u64, 1..=1_000_000, million),
            within("server.requests_max", self.requests_max as u64, 1..=1_000_000, million),
            within(
                "server.event_streams_max",
                self.event_streams_max as u64,
                0..=1_000_000,
                "want 0 to 1,000,000 streams",
            ),
            within(
                "server.event_streams_per_user_max",
                self.event_streams_per_user_max as u64,
                1..=1_000_000,
                "want 1 to 1,000,000 streams",
            ),
            within(
                "server.shutdown_timeout_seconds",
                self.shutdown_timeout_seconds,
                0..=300,
                "want 0 to 300 seconds",
            ),
        ]
    }

    fn check_tls(&self) -> Checked {
        if self.tls_cert_file.is_some() == self.tls_key_file.is_some() {
            return Ok(());
        }
        Err(InvalidSetting {
            key: "server.tls_key_file",
            got: "one without the other".into(),
            want: "want tls_cert_file and tls_key_file, or neither",
        })
    }
}
