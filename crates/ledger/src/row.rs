//! Reads typed values from a row, and converts values to their stored form.

use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use seatkeeper_core::{
    Device, PoolId, PoolKind, RegistryTime, SessionId, Span, TenantId, Tier, Usage, Window,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::database::{Readable, Row};
use crate::{Error, times};

/// A row, read by column name. An invalid value gives [`Error::Corrupt`].
pub(crate) struct Fields<'r>(pub(crate) &'r Row);

impl<'r> Fields<'r> {
    /// Reads a value as the driver decodes it.
    pub(crate) fn value<T: Readable<'r>>(&self, column: &'static str) -> Result<T, Error> {
        self.0.get(column).map_err(|source| corrupt(column, source))
    }

    /// Reads an integer that is never negative.
    pub(crate) fn whole(&self, column: &'static str) -> Result<u64, Error> {
        u64::try_from(self.value::<i64>(column)?).map_err(|source| corrupt(column, source))
    }

    /// Reads an unsigned 32-bit integer.
    pub(crate) fn small(&self, column: &'static str) -> Result<u32, Error> {
        u32::try_from(self.value::<i64>(column)?).map_err(|source| corrupt(column, source))
    }

    /// Reads an optional integer of type `N`.
    pub(crate) fn number_maybe<N>(&self, column: &'static str) -> Result<Option<N>, Error>
    where
        N: TryFrom<i64, Error: std::error::Error + Send + Sync + 'static>,
    {
        let number = self.value::<Option<i64>>(column)?;
        number.map(|number| N::try_from(number).map_err(|source| corrupt(column, source))).transpose()
    }

    /// Reads a text and parses the text as a `T`.
    pub(crate) fn named<T>(&self, column: &'static str) -> Result<T, Error>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        self.value::<&str>(column)?.parse().map_err(|source| corrupt(column, source))
    }

    /// Reads an optional text and parses the text as a `T`.
    pub(crate) fn named_maybe<T>(&self, column: &'static str) -> Result<Option<T>, Error>
    where
        T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let text = self.value::<Option<&str>>(column)?;
        text.map(|text| text.parse().map_err(|source| corrupt(column, source))).transpose()
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<RegistryTime, Error> {
        Ok(times::from_stored(self.value::<DateTime<Utc>>(column)?))
    }

    pub(crate) fn time_maybe(&self, column: &'static str) -> Result<Option<RegistryTime>, Error> {
        Ok(self.value::<Option<DateTime<Utc>>>(column)?.map(times::from_stored))
    }

    /// Reads a JSON text and deserializes a `T`.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Error> {
        serde_json::from_str(self.value(column)?).map_err(|source| corrupt(column, source))
    }

    pub(crate) fn span(&self, column: &'static str) -> Result<Span, Error> {
        Ok(Span::from_millis(self.whole(column)?))
    }

    /// Reads an amount in millionths of a unit.
    pub(crate) fn usage(&self, column: &'static str) -> Result<Usage, Error> {
        Ok(Usage::from_micros(self.whole(column)?))
    }

    /// Reads the window between columns `window_starts_at` and `window_ends_at`.
    pub(crate) fn window(&self) -> Result<Window, Error> {
        const ENDS: &str = "window_ends_at";
        let window = Window::new(self.time("window_starts_at")?, self.time(ENDS)?);
        window.ok_or_else(|| corrupt(ENDS, "a window that ends before it starts"))
    }

    pub(crate) fn tier(&self, column: &'static str) -> Result<Tier, Error> {
        let number = u8::try_from(self.value::<i64>(column)?).map_err(|source| corrupt(column, source))?;
        Ok(Tier(number))
    }

    pub(crate) fn session_id(&self, column: &'static str) -> Result<SessionId, Error> {
        SessionId::try_from(self.value::<Uuid>(column)?).map_err(|source| corrupt(column, source))
    }

    pub(crate) fn session_id_maybe(&self, column: &'static str) -> Result<Option<SessionId>, Error> {
        let uuid = self.value::<Option<Uuid>>(column)?;
        uuid.map(|uuid| SessionId::try_from(uuid).map_err(|source| corrupt(column, source))).transpose()
    }

    /// Reads the device described by columns `device_type` and `device_name`.
    pub(crate) fn device(&self) -> Result<Option<Device>, Error> {
        let kind = self.value::<Option<&str>>("device_type")?;
        let name = self.value::<Option<&str>>("device_name")?;
        Ok(kind.map(|kind| Device { kind: kind.into(), name: name.map(Box::from) }))
    }

    /// Reads the pool named by columns `tenant_id`, `pool_kind` and `pool_id`.
    pub(crate) fn pool(&self) -> Result<PoolId, Error> {
        let kind: PoolKind = self.named("pool_kind")?;
        let tenant = TenantId::new(self.value::<&str>("tenant_id")?);
        Ok(PoolId::new(kind, tenant, Arc::from(self.value::<&str>("pool_id")?)))
    }
}

pub(crate) fn corrupt(
    column: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Corrupt { column, source: source.into() }
}

/// Converts an integer for storage. Numbers from 2^63 on are stored as `i64::MAX`.
pub(crate) fn stored_whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Serializes a state as JSON for storage.
pub(crate) fn stored_json(state: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(state).map_err(|source| corrupt("detail", source))
}
