//! A prepared request. Any number of sends share its headers and body.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::Full;

use crate::{Error, Target};

/// A prepared request; a clone is cheap.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    uri: Uri,
    headers: Arc<HeaderMap>,
    body: Bytes,
}

impl Call {
    /// Prepares a request to `target` with the headers of `target`.
    pub fn new(target: &Target, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Self, Error> {
        let uri = Uri::try_from(path).map_err(http::Error::from)?;
        Ok(Self { method, uri, headers: target.headers().clone(), body: body.into() })
    }

    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = HeaderMap::clone(&self.headers);
        request
    }
}
