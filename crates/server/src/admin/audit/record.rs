//! JSON form of an audit record.

use seatkeeper_core::{Holder, PoolKind, UserId};
use seatkeeper_ledger::audit::AuditRecord;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::times::text_of;

/// An audit record. The optional members depend on the action.
#[derive(Serialize, ToSchema)]
pub(super) struct RecordAnswer {
    /// Position in the log.
    pub(super) id: u64,
    /// The registry's time of the event.
    pub(super) at: String,
    pub(super) pool_kind: &'static str,
    pub(super) pool: String,
    /// `session` or `entitlement`, each numbered without a gap per pool; or `plan`, numbered without a gap
    /// per plan, with the plan's name as `pool`.
    pub(super) stream: &'static str,
    pub(super) seq: u64,
    pub(super) epoch: u64,
    pub(super) action: &'static str,
    pub(super) session_id: Option<Uuid>,
    /// Holder or requester of the seat: a machine, a user or a device's fingerprint.
    pub(super) holder: Option<String>,
    /// Process on the machine, only for a license counted per process.
    pub(super) instance_id: Option<String>,
    /// `user:` or `admin:` and a name, or `system`.
    pub(super) actor: String,
    /// Tenant of the actor, for a service of a foreign tenant.
    pub(super) actor_tenant: Option<String>,
    pub(super) request_id: Option<String>,
    /// Reason for the end of a session or the denial of a claim.
    pub(super) reason: Option<String>,
    /// Limit in force.
    pub(super) limit: u32,
    /// Version of the entitlement that set the limit.
    pub(super) version: u64,
    /// Number of live sessions after the event.
    pub(super) live: Option<u32>,
    /// Number of claims counted by a denial.
    pub(super) count: u64,
    pub(super) user: Option<String>,
    /// Tier of a session on a capacity.
    pub(super) tier: Option<u8>,
    pub(super) ip: Option<String>,
    pub(super) user_agent: Option<String>,
    pub(super) device_type: Option<String>,
    pub(super) device_name: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Box<RawValue>>,
    pub(super) last_heartbeat_at: Option<String>,
    pub(super) expires_at: Option<String>,
    /// Entitlement or plan after its change.
    #[schema(value_type = Option<Object>)]
    pub(super) detail: Option<Box<RawValue>>,
}

impl RecordAnswer {
    pub(super) fn from_record(record: &AuditRecord) -> Self {
        let object = |text: &Option<String>| text.clone().and_then(|text| RawValue::from_string(text).ok());
        let (holder, instance_id) = record.holder.as_ref().map(Holder::parts).unzip();
        let device = record.device.as_ref();
        let (actor, actor_tenant) = actor_of(&record.actor);
        Self {
            id: record.id,
            at: text_of(record.at),
            pool_kind: record.pool.kind.as_str(),
            pool: record.pool.name.to_string(),
            stream: record.stream.as_str(),
            seq: record.seq,
            epoch: record.epoch,
            action: record.action.as_str(),
            session_id: record.session.map(|id| id.as_uuid()),
            holder: holder.map(Into::into),
            instance_id: instance_id.flatten().map(Into::into),
            actor,
            actor_tenant,
            request_id: record.request.clone(),
            reason: record.reason.clone(),
            limit: record.limit,
            version: record.version,
            live: record.live,
            count: record.count,
            user: record.user.as_ref().map(|user| user.parts().0.into()),
            tier: record.tier.map(|tier| tier.0).filter(|_| record.pool.kind == PoolKind::Capacity),
            ip: record.ip.clone(),
            user_agent: record.user_agent.clone(),
            device_type: device.map(|device| device.kind.to_string()),
            device_name: device.and_then(|device| device.name.as_deref()).map(Into::into),
            metadata: object(&record.metadata),
            last_heartbeat_at: record.last_heartbeat.map(text_of),
            expires_at: record.expires.map(text_of),
            detail: object(&record.detail),
        }
    }
}

/// Splits an actor into its role with name, and its tenant if the actor comes from a foreign tenant.
fn actor_of(text: &str) -> (String, Option<String>) {
    let Some((role, name)) = text.split_once(':') else { return (text.into(), None) };
    let name = UserId::from(name);
    let (user, tenant) = name.parts();
    (format!("{role}:{user}"), tenant.map(Into::into))
}
