//! The server under load.

use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::Error;

/// A server, with the bearer token for its requests.
#[derive(Clone)]
pub struct Target {
    authority: Authority,
    /// `None` for plain HTTP.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    headers: Arc<HeaderMap>,
}

impl Target {
    /// Returns the server at `address` (`host:port` or `http://host:port`), for plain HTTP with or without a
    /// bearer token.
    pub fn new(address: &str, token: Option<&str>) -> Result<Self, Error> {
        let bare = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        Self::at(bare, address, token)
    }

    /// Returns the server at `address` (`https://host:port`). `ca` has the trusted CA certificates in PEM.
    pub fn secured(address: &str, token: Option<&str>, ca: &[u8]) -> Result<Self, Error> {
        let bad = || Error::BadAddress { given: address.to_owned() };
        let bare = address.strip_prefix("https://").ok_or_else(bad)?.trim_end_matches('/');
        let target = Self::at(bare, address, token)?;
        let host = target.authority.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|_| bad())?;
        Ok(Self { tls: Some((connector(ca)?, name)), ..target })
    }

    fn at(bare: &str, given: &str, token: Option<&str>) -> Result<Self, Error> {
        let bad = || Error::BadAddress { given: given.to_owned() };
        let authority: Authority = bare.parse().map_err(|_| bad())?;
        if authority.port_u16().is_none() || authority.host().is_empty() {
            return Err(bad());
        }
        let mut headers = HeaderMap::with_capacity(3);
        headers.insert(HOST, HeaderValue::from_str(bare).map_err(http::Error::from)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok(Self { authority, tls: None, headers: Arc::new(headers) })
    }

    /// Returns the address to connect to, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.authority.as_str()
    }

    /// Returns the TLS connector, and the name that the server's certificate must have.
    pub(crate) fn tls(&self) -> Option<&(TlsConnector, ServerName<'static>)> {
        self.tls.as_ref()
    }

    /// Returns the headers of every request.
    pub(crate) fn headers(&self) -> &Arc<HeaderMap> {
        &self.headers
    }
}

fn connector(ca: &[u8]) -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate.map_err(Error::NotPem)?)?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.authority).finish()
    }
}
