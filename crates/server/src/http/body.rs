//! JSON bodies: parsed, checked, and refused with the field that is wrong.

mod whole;

use std::convert::Infallible;

use axum::extract::{FromRequest, Request};
use garde::Validate;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::app::App;
use crate::error::{Error, FieldError};
pub(crate) use whole::BODY_BYTES_MAX;

/// A JSON body whose every field is as it must be.
pub(crate) struct Body<T>(pub(crate) T);

/// A body that is not read yet, for a handler that has something to see to first.
pub(crate) struct Unread(Request);

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
    /// Reads the body, and checks it as [`Body`] does.
    pub(crate) async fn read<T>(self, app: &App) -> Result<T, Error>
    where
        T: DeserializeOwned + Validate<Context = ()>,
    {
        let bytes = whole::read(self.0, app.settings.server.body_timeout()).await?;
        let text = str::from_utf8(&bytes).map_err(Error::NotUtf8)?;
        let value: T = if text.trim_ascii_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| refused::<T>(error, text))?
        } else {
            return Err(not_an_object(text));
        };
        value.validate().map_err(|report| Error::Invalid(fields_of(&report)))?;
        Ok(value)
    }
}

/// An array would be taken for the fields in their order, which no client may rely on.
fn not_an_object(text: &str) -> Error {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Error::field("body", "must be a JSON object"),
        Err(error) => Error::NotJson(error),
    }
}

/// Tells text that is not JSON from JSON that does not fit, and finds the field of the latter.
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

/// The field that an error is about. What is inside a client's own object is the object's matter; an
/// error about a missing or repeated field names it in its message alone.
pub(super) fn field_of(path: &serde_path_to_error::Path, message: &str) -> String {
    let named = ["missing field `", "duplicate field `"]
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
