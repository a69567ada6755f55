//! Extractors of the authenticated caller.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::app::App;
use crate::auth::{Caller, bearer_of};
use crate::error::Error;

/// A caller with a valid token of the issuer. License tokens are refused.
pub(crate) struct Who(Arc<Caller>);

/// Any caller with a valid token or a license token. A handler with this extractor must see to it that a caller with a
/// license token reaches nothing but its license ([`Scopes::license`](crate::auth::Scopes)).
pub(crate) struct LicenseCaller(Arc<Caller>);

/// The caller of a request whose token a layer has verified.
#[derive(Clone)]
pub(crate) struct VerifiedCaller(pub(crate) Arc<Caller>);

/// A caller whose token has the admin scope.
pub(crate) struct Admin(Arc<Caller>);

impl FromRequestParts<App> for Who {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let LicenseCaller(caller) = LicenseCaller::from_request_parts(parts, app).await?;
        Ok(Self(caller.without_license_token()?))
    }
}

impl FromRequestParts<App> for LicenseCaller {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        if let Some(VerifiedCaller(caller)) = parts.extensions.remove() {
            return Ok(Self(caller));
        }
        Ok(Self(app.verifier.caller(bearer_of(&parts.headers)?).await?))
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let Who(caller) = Who::from_request_parts(parts, app).await?;
        if caller.scopes.admin { Ok(Self(caller)) } else { Err(Error::NotAdmin) }
    }
}

impl Deref for Who {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl Deref for LicenseCaller {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl Deref for Admin {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}
