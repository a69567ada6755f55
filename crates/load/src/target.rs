//! The server under load.

use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

use crate::Error;

/// A server and the token that it is asked with.
#[derive(Clone)]
pub struct Target {
    authority: Authority,
    headers: Arc<HeaderMap>,
}

impl Target {
    /// The server at `address` (`host:port` or `http://host:port`; plain HTTP only), asked with a
    /// bearer token, or without one.
    pub fn new(address: &str, token: Option<&str>) -> Result<Self, Error> {
        let bad = || Error::BadAddress { given: address.to_owned() };
        let bare = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
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
        Ok(Self { authority, headers: Arc::new(headers) })
    }

    /// Where to connect to, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.authority.as_str()
    }

    /// The headers that every request has.
    pub(crate) fn headers(&self) -> &Arc<HeaderMap> {
        &self.headers
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.authority).finish()
    }
}
