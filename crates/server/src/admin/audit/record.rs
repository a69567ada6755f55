use seatkeeper_core::{Holder, PoolKind, UserId};
use seatkeeper_ledger::audit::AuditRecord;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::times::text_of;

/// One record. Which of the optional members it has depends on its action.
#[derive(Serialize, ToSchema)]
pub(super) struct RecordAnswer {
    /// Its place in the log.
    pub(super) id: u64,
    /// The registry's time.
    pub(super) at: String,
    pub(super) pool_kind: &'static str,
    pub(super) pool: String,
    /// `session` or `entitlement`, each numbered without a gap in its pool; or `plan`, numbered likewise
    /// for each plan, whose name is then the pool's.
    pub(super) stream: &'static str,
    pub(super) seq: u64,
    pub(super) epoch: u64,
    pub(super) action: &'static str,
    pub(super) session_id: Option<Uuid>,
    /// Who holds or asked for the seat: a machine, a user or a device's fingerprint.
    pub(super) holder: Option<String>,
    /// The process on the machine; only if the license counts per process.
    pub(super) instance_id: Option<String>,
    /// `user:` or `admin:` and a name, or `system`.
    pub(super) actor: String,
    /// The actor's tenant, if it is a service of another one.
    pub(super) actor_tenant: Option<String>,
    pub(super) request_id: Option<String>,
    /// Why a session ended or a claim was denied.
    pub(super) reason: Option<String>,
    /// The limit in force.
    pub(super) limit: u32,
    /// The version of the entitlement that gave it.
    pub(super) version: u64,
    /// Sessions live after it.
    pub(super) live: Option<u32>,
    /// How many claims a denial counts.
    pub(super) count: u64,
    pub(super) user: Option<String>,
    /// The tier of a capacity.
    pub(super) tier: Option<u8>,
    pub(super) ip: Option<String>,
    pub(super) user_agent: Option<String>,
    pub(super) device_type: Option<String>,
    pub(super) device_name: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Value>,
    pub(super) last_heartbeat_at: Option<String>,
    pub(super) expires_at: Option<String>,
    /// An entitlement or a plan after its change.
    #[schema(value_type = Option<Object>)]
    pub(super) detail: Option<Value>,
}

impl RecordAnswer {
    pub(super) fn of(record: &AuditRecord) -> Self {
        let object = |text: &Option<String>| text.as_deref().and_then(|text| serde_json::from_str(text).ok());
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

/// The actor by its role and name, and the tenant that it came from if that is another.
fn actor_of(text: &str) -> (String, Option<String>) {
    let Some((role, name)) = text.split_once(':') else { return (text.into(), None) };
    let name = UserId::from(name);
    let (user, tenant) = name.parts();
    (format!("{role}:{user}"), tenant.map(Into::into))
}
