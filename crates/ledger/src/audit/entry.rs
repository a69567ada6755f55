//! An audit record before the write, with its values in stored form.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use seatkeeper_core::{Actor, Change, Event, Origin, PoolId, RegistryTime};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::PgRecordEncoder;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};
use uuid::Uuid;

use super::{Action, Stream};
use crate::database::Query;
use crate::row::stored_whole;
use crate::times;

/// Defines [`Entry`] and its encodings from one list of columns.
macro_rules! entry {
    ($($column:ident: $type:ty,)+) => {
        /// A record to append. The fields are the columns of table `audit_log` behind the id, in the order of
        /// the table.
        #[derive(Default)]
        pub(crate) struct Entry<'a> {
            $(pub(crate) $column: $type,)+
        }

        impl Entry<'_> {
            /// The names of the columns.
            pub(crate) const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),+];

            /// Binds the values to a statement, in the order of the columns.
            pub(crate) fn bind<'c>(&self, query: Query<'c>) -> Query<'c> {
                query$(.bind(&self.$column))+
            }
        }

        /// Encodes a row of table `audit_log`. PostgreSQL assigns the id.
        impl Encode<'_, Postgres> for Entry<'_> {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                let mut row = PgRecordEncoder::new(buffer);
                row.encode(None::<i64>)?$(.encode(&self.$column)?)+.finish();
                Ok(IsNull::No)
            }
        }
    };
}

entry! {
    at: DateTime<Utc>,
    tenant_id: &'a str,
    pool_kind: &'static str,
    pool_id: &'a str,
    stream: &'static str,
    seq: i64,
    epoch: i64,
    action: &'static str,
    session_id: Option<Uuid>,
    holder: Option<&'a str>,
    actor: Cow<'static, str>,
    request_id: Option<&'a str>,
    reason: Option<&'static str>,
    limit_seats: i64,
    limit_version: i64,
    live: Option<i64>,
    count: i64,
    folded: bool,
    user_id: Option<&'a str>,
    tier: Option<i64>,
    ip: Option<String>,
    user_agent: Option<&'a str>,
    metadata: Option<&'a str>,
    device_type: Option<&'a str>,
    device_name: Option<&'a str>,
    ttl_ms: Option<i64>,
    last_heartbeat_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    detail: Option<String>,
}

impl Type<Postgres> for Entry<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("audit_log")
    }
}

impl PgHasArrayType for Entry<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("audit_log")
    }
}

impl<'a> Entry<'a> {
    /// Builds a record of one action on a pool.
    pub(crate) fn new(pool: &'a PoolId, at: RegistryTime, origin: &'a Origin, action: Action) -> Self {
        Self {
            at: times::stored(at),
            tenant_id: pool.tenant.as_str(),
            pool_kind: pool.kind.as_str(),
            pool_id: &pool.name,
            action: action.as_str(),
            actor: match &origin.actor {
                Actor::User(user) => format!("user:{user}").into(),
                Actor::Admin(user) => format!("admin:{user}").into(),
                Actor::System => "system".into(),
            },
            request_id: origin.request.as_ref().map(|request| request.as_str()),
            count: 1,
            ..Self::default()
        }
    }

    /// Builds the record of a registry's event.
    pub(crate) fn from_event(event: &'a Event) -> Self {
        let entry = |action| Self {
            stream: Stream::Session.as_str(),
            seq: stored_whole(event.seq),
            epoch: stored_whole(event.epoch),
            limit_seats: event.limit.0.into(),
            limit_version: stored_whole(event.version),
            live: Some(event.live.into()),
            ..Self::new(&event.pool, event.at, &event.origin, action)
        };
        match &event.change {
            Change::Admitted { session, expires, particulars } => Self {
                session_id: Some(session.id.as_uuid()),
                holder: Some(session.holder.as_str()),
                user_id: Some(session.users.first().as_str()),
                tier: Some(session.tier.0.into()),
                ip: particulars.ip.map(|ip| ip.to_string()),
                user_agent: particulars.user_agent.as_deref(),
                metadata: particulars.metadata.as_deref(),
                device_type: particulars.device.as_ref().map(|device| &*device.kind),
                device_name: particulars.device.as_ref().and_then(|device| device.name.as_deref()),
                ttl_ms: Some(stored_whole(session.ttl.as_millis())),
                last_heartbeat_at: Some(times::stored(session.last_heartbeat)),
                expires_at: Some(times::stored(*expires)),
                ..entry(Action::Admitted)
            },
            Change::Ended { session, holder, tier, reason, last_heartbeat, expires } => Self {
                session_id: Some(session.as_uuid()),
                holder: Some(holder.as_str()),
                reason: Some(reason.as_str()),
                tier: Some(tier.0.into()),
                last_heartbeat_at: Some(times::stored(*last_heartbeat)),
                expires_at: Some(times::stored(*expires)),
                ..entry(Action::Ended)
            },
            Change::Denied(denied) => Self {
                holder: Some(denied.holder.as_str()),
                reason: Some(denied.why.as_str()),
                count: stored_whole(denied.count),
                folded: denied.folded,
                ..entry(Action::Denied)
            },
        }
    }
}
