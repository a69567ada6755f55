//! JSON bodies: parsed, validated, and refused with the name of the wrong field.

mod whole;

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use garde::Validate;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::app::App;
use crate::error::{Error, FieldError};
pub(crate) use whole::{BODY_BYTES_MAX, NoRoom, read as read_body};

/// A parsed and validated JSON body.
pub(crate) struct Body<T>(pub(crate) T);

/// A body not yet parsed, for a handler that first checks something else, such as a rate limit.
pub(crate) struct Unread(Request);

/// The bytes of a body already read by a layer, in the extensions of the request.
#[derive(Clone)]
pub(crate) struct ReadAhead(pub(crate) Bytes);

/// Reads the body of a request within `patience`, and keeps the bytes for the handler.
pub(crate) async fn read_ahead(request: &mut Request, patience: Duration) -> Result<&[u8], Error> {
    let body = std::mem::take(request.body_mut());
    let bytes = whole::read(request.headers(), body, patience).await?;
    let ReadAhead(bytes) = request.extensions_mut().get_or_insert_with(|| ReadAhead(bytes));
    Ok(bytes)
}

impl<S: Sync> FromRequest<S> for Unread {
    type Rejection = Infallible;
    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self(request))
    }
}

impl<T: DeserializeOwned + Validate<Context = ()>> FromRequest<App> for Body<T> {
    type Rejection = Error;
    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        Unread(request).read(app).await.map(Self)
    }
}

impl Unread {
    /// Reads, parses and validates the body, as [`Body`] does.
    pub(crate) async fn read<T>(self, app: &App) -> Result<T, Error>
    where
        T: DeserializeOwned + Validate<Context = ()>,
    {
        parse(str::from_utf8(&self.bytes(app).await?).map_err(Error::NotUtf8)?)
    }

    /// Reads a body that may be absent. An empty body and `null` give the default; any other body must be valid.
    pub(crate) async fn read_or_default<T>(self, app: &App) -> Result<T, Error>
    where
        T: Default + DeserializeOwned + Validate<Context = ()>,
    {
        let bytes = self.bytes(app).await?;
        if bytes.is_empty() || bytes.trim_ascii() == b"null" {
            return Ok(T::default());
        }
        parse(str::from_utf8(&bytes).map_err(Error::NotUtf8)?)
    }

    async fn bytes(self, app: &App) -> Result<Bytes, Error> {
        let (mut parts, body) = self.0.into_parts();
        if let Some(ReadAhead(bytes)) = parts.extensions.remove() {
            return Ok(bytes);
        }
        whole::read(&parts.headers, body, app.settings.server.body_timeout()).await
    }
}

/// Parses and validates a JSON body.
fn parse<T: DeserializeOwned + Validate<Context = ()>>(text: &str) -> Result<T, Error> {
    let value: T = if text.trim_ascii_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| refused::<T>(error, text))?
    } else {
        return Err(not_an_object(text));
    };
    value.validate().map_err(|report| Error::Invalid(fields_of(&report)))?;
    Ok(value)
}

/// Returns the error for a body that is not a JSON object. An array must be refused, because serde would read
/// it as fields in the order of declaration, and no client may rely on the order.
fn not_an_object(text: &str) -> Error {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Error::field("body", "must be a JSON object"),
        Err(error) => Error::NotJson(error),
    }
}

/// Distinguishes invalid JSON from JSON of the wrong form, and names the wrong field of the latter.
fn refused<T: DeserializeOwned>(error: serde_json::Error, text: &str) -> Error {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Error::NotJson(error);
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut parser) {
        Ok(_) => Error::NotJson(error),
        Err(error) => {
            let message = error.inner().to_string();
            Error::field(field_of(error.path(), &message), without_place(&message))
        }
    }
}

/// Returns the name of the field behind an error. A path into a client's own object is cut to the object's
/// field. An error about a missing or duplicate field names the field only in the message.
pub(super) fn field_of(path: &serde_path_to_error::Path, message: &str) -> String {
    let named = ["missing field `", "duplicate field `", "unknown field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.split('`').next());
    match (named, path.iter().next()) {
        (Some(field), _) => field.into(),
        (None, Some(field)) => field.to_string(),
        (None, None) => "body".into(),
    }
}

fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).into()
}

fn fields_of(report: &garde::Report) -> Vec<FieldError> {
    report
        .iter()
        .map(|(path, error)| FieldError { field: path.to_string(), message: error.message().to_string() })
        .collect()
}
