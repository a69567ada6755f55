//! A session of any kind, as shown to license clients and operators.

use seatkeeper_core::{Authority, PoolKind, Reach};
use seatkeeper_ledger::sessions::SessionRecord;
use seatkeeper_registry::Live;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::times::text_of;

/// A session, live or ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionAnswer {
    session_id: Uuid,
    /// `license`, `subscriber`, `capacity` or `group`.
    pool_kind: &'static str,
    /// The license id, the subscriber, or the user and the capacity.
    pool: String,
    /// The process on the machine; absent unless the license counts per process.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    /// The machine that holds the seat of a license, or the user where the license counts per user.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_id: Option<String>,
    /// The holder of a seat outside licenses: a user, or a device's fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// The user who acquired the session; absent for a further user of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The tenant of the user; present for a service of a foreign tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_tenant: Option<String>,
    /// The tier of a capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<u8>,
    started_at: String,
    last_heartbeat_at: String,
    expires_at: String,
    /// `active` or `ended`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    /// The reason of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The address of the user; absent for a further user of the machine, as are `user_agent` and `metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
}

impl SessionAnswer {
    /// Builds the answer from the record, for the caller `who`. For a live session the heartbeat and the expiry
    /// come from the registry, which is newer than the record. The user on record and the user's particulars are
    /// shown to that user and to callers who reach the whole tenant.
    pub(crate) fn new(record: &SessionRecord, live: Option<&Live>, who: &Authority) -> Self {
        let answer = Self::with_particulars(record, live);
        if is_shown_to(who, record) {
            return answer;
        }
        Self { user: None, user_tenant: None, ip: None, user_agent: None, metadata: None, ..answer }
    }

    fn with_particulars(record: &SessionRecord, live: Option<&Live>) -> Self {
        let (holder, instance_id) = record.session.holder.parts();
        let (machine_id, holder) = match record.pool.kind {
            PoolKind::License => (Some(holder.into()), None),
            PoolKind::Subscriber | PoolKind::Capacity | PoolKind::Group => (None, Some(holder.into())),
        };
        let (user, user_tenant) = record.session.users.first().parts();
        let last_heartbeat = live.map_or(&record.session, |live| &live.session).last_heartbeat;
        let (metadata, device) = (&record.particulars.metadata, record.particulars.device.as_ref());
        Self {
            session_id: record.session.id.as_uuid(),
            pool_kind: record.pool.kind.as_str(),
            pool: record.pool.name.to_string(),
            instance_id: instance_id.map(Into::into),
            machine_id,
            holder,
            user: Some(user.into()),
            user_tenant: user_tenant.map(Into::into),
            tier: (record.pool.kind == PoolKind::Capacity).then_some(record.session.tier.0),
            started_at: text_of(record.session.started),
            last_heartbeat_at: text_of(last_heartbeat),
            expires_at: text_of(live.map_or(record.expires, |live| live.expires)),
            status: if record.ended.is_some() { "ended" } else { "active" },
            ended_at: record.ended.map(|end| text_of(end.at)),
            reason: record.ended.map(|end| end.reason.as_str()),
            ip: record.particulars.ip.map(|ip| ip.to_string()),
            user_agent: record.particulars.user_agent.as_deref().map(Into::into),
            device_type: device.map(|device| device.kind.to_string()),
            device_name: device.and_then(|device| device.name.as_deref()).map(Into::into),
            metadata: metadata.as_deref().and_then(|text| RawValue::from_string(text.into()).ok()),
        }
    }
}

/// Checks that the caller may read who acquired the session, and from where. A share of the session is not
/// enough: any user of the tenant gets a share by the name of the machine, which denials list.
fn is_shown_to(who: &Authority, record: &SessionRecord) -> bool {
    let user = record.session.users.first();
    if who.tenant != record.pool.tenant {
        return who.abroad.as_ref() == Some(user);
    }
    match &who.reach {
        Reach::Own(own) => own == user,
        Reach::Tenant => true,
    }
}
