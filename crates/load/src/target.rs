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
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_rustls::TlsConnector;

use crate::Error;

/// The port of an `http` address without a port.
const HTTP_PORT: u16 = 80;

/// The port of an `https` address without a port.
const HTTPS_PORT: u16 = 443;

/// A server, with the bearer token for its requests.
#[derive(Clone)]
pub struct Target {
    authority: Authority,
    /// The address to connect to, as `host:port`.
    address: String,
    /// `None` for plain HTTP.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    headers: Arc<HeaderMap>,
}

impl Target {
    /// Returns the server at `address` (`host:port` or `http://host[:port]`), for plain HTTP with or without a
    /// bearer token.
    pub fn new(address: &str, token: Option<&str>) -> Result<Self, Error> {
        match address.strip_prefix("http://") {
            Some(bare) => Self::at(bare, Some(HTTP_PORT), address, token),
            None => Self::at(address, None, address, token),
        }
    }

    /// Returns the server at `address` (`https://host[:port]`). `ca` has the trusted CA certificates in PEM; `None` trusts
    /// the certificates of the system.
    pub fn secured(address: &str, token: Option<&str>, ca: Option<&[u8]>) -> Result<Self, Error> {
        let bad = || Error::BadAddress { given: address.to_owned() };
        let bare = address.strip_prefix("https://").ok_or_else(bad)?;
        let target = Self::at(bare, Some(HTTPS_PORT), address, token)?;
        let host = target.authority.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|_| bad())?;
        Ok(Self { tls: Some((connector(ca)?, name)), ..target })
    }

    /// Returns the plain server at `bare`, the `given` address without a scheme. Without `port_default`, the address needs a
    /// port.
    fn at(bare: &str, port_default: Option<u16>, given: &str, token: Option<&str>) -> Result<Self, Error> {
        let bad = || Error::BadAddress { given: given.to_owned() };
        let bare = bare.trim_end_matches('/');
        let authority: Authority = bare.parse().map_err(|_| bad())?;
        let port = authority.port_u16().or(port_default).ok_or_else(bad)?;
        if authority.host().is_empty() {
            return Err(bad());
        }
        let address = format!("{}:{port}", authority.host());
        let mut headers = HeaderMap::with_capacity(3);
        headers.insert(HOST, HeaderValue::from_str(bare).map_err(http::Error::from)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok(Self { authority, address, tls: None, headers: Arc::new(headers) })
    }

    /// Returns the address to connect to, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
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

/// Returns a connector that trusts the CA certificates in `ca`; `None` trusts the certificates of the system.
fn connector(ca: Option<&[u8]>) -> Result<TlsConnector, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = match ca {
        Some(ca) => config.with_root_certificates(roots(ca)?),
        None => config.with_platform_verifier()?,
    };
    Ok(TlsConnector::from(Arc::new(config.with_no_client_auth())))
}

/// Returns the CA certificates in `pem`.
fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(Error::NotPem)?)?;
    }
    Ok(roots)
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.authority).finish()
    }
}
