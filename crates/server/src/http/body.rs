//! JSON bodies: parsed, checked, and refused with the field that is wrong.

use axum::body::{Body as Raw, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_LENGTH;
use garde::Validate;
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::error::Error as _;

use crate::error::{Error, FieldError};

/// The longest body.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// A JSON body whose every field is as it must be.
pub(crate) struct Body<T>(pub(crate) T);

impl<S, T> FromRequest<S> for Body<T>
where
    S: Sync,
    T: DeserializeOwned + Validate<Context = ()>,
{
    type Rejection = Error;
    async fn from_request(request: Request, _: &S) -> Result<Self, Error> {
        if told_length(&request).is_some_and(|length| length > BODY_BYTES_MAX) {
            return Err(Error::BodyTooLarge);
        }
        let bytes = read(request.into_body()).await?;
        let value: T = match bytes.trim_ascii_start().first() {
            Some(b'{') => serde_json::from_slice(&bytes).map_err(|error| refused::<T>(error, &bytes))?,
            _ => return Err(not_an_object(&bytes)),
        };
        value.validate().map_err(|report| Error::Invalid(fields_of(&report)))?;
        Ok(Self(value))
    }
}

fn told_length(request: &Request) -> Option<usize> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(body: Raw) -> Result<axum::body::Bytes, Error> {
    to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| {
        let too_long = error.source().is_some_and(|cause| cause.is::<LengthLimitError>());
        if too_long { Error::BodyTooLarge } else { Error::BodyUnreadable(error) }
    })
}

/// An array would be taken for the fields in their order, which no client may rely on.
fn not_an_object(bytes: &[u8]) -> Error {
    match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Ok(_) => Error::field("body", "must be a JSON object"),
        Err(error) => Error::NotJson(error),
    }
}

/// Tells text that is not JSON from JSON that does not fit; for the latter, parses again to find the field.
fn refused<T: DeserializeOwned>(error: serde_json::Error, bytes: &[u8]) -> Error {
    if error.classify() != Category::Data {
        return Error::NotJson(error);
    }
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut parser) {
        Ok(_) => Error::NotJson(error),
        Err(error) => {
            let path = error.path().to_string();
            let message = error.inner().to_string();
            Error::field(field_of(&path, &message), without_place(&message))
        }
    }
}

/// The field that an error is about: one about a missing or repeated field points at the object around
/// it, and names the field in its message.
pub(super) fn field_of(path: &str, message: &str) -> String {
    let named = ["missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.split('`').next());
    match (path, named) {
        (".", Some(field)) => field.into(),
        (path, Some(field)) => format!("{path}.{field}"),
        (path, None) => path.into(),
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
