//! Steps shared by all writes to a plan.

use seatkeeper_core::TenantId;

use super::Plan;
use super::state::State;
use crate::audit::{Action, EntitlementChange, Stream, next_seq};
use crate::database::{Query, Tx};
use crate::idempotency::{self, Entity, StoredAnswer};
use crate::row::{stored_json, stored_whole};
use crate::{Effect, Error, Write, Written, times};

/// Returns the plan from the kept answer of an earlier request, if the write is a retry.
pub(super) async fn answered(
    tx: &mut Tx,
    tenant: &TenantId,
    write: &Write<'_>,
) -> Result<Option<Written<Plan>>, Error> {
    let answered = idempotency::answered::<State>(tx, tenant, Entity::Plan, write).await?;
    let plan = answered.map(|answered| answered.state.restore(tenant)).transpose()?;
    Ok(plan.map(|value| Written { value, effect: Effect::Replayed }))
}

/// Keeps the answer for a retry.
pub(super) async fn keep(tx: &mut Tx, plan: &Plan, write: &Write<'_>) -> Result<(), Error> {
    let answer = StoredAnswer { id: plan.name.to_string(), state: State::from_plan(plan) };
    idempotency::keep(tx, &plan.tenant, (Entity::Plan, None), &answer, write).await
}

/// Appends the record of a plan's new state.
pub(super) async fn record(tx: &mut Tx, action: Action, plan: &Plan, write: &Write<'_>) -> Result<(), Error> {
    let pool = plan.pool();
    let change = EntitlementChange {
        pool: &pool,
        stream: Stream::Plan,
        seq: next_seq(tx, &pool, Stream::Plan).await?,
        action,
        limit: plan.device_limit.0,
        version: plan.version,
        state: stored_json(&State::from_plan(plan))?,
    };
    change.record(tx, write).await
}

/// Inserts the plan's row.
pub(super) async fn insert(tx: &mut Tx, plan: &Plan) -> Result<(), Error> {
    let statement = tx.query(include_str!("../../sql/create_plan.sql"));
    match bound(statement, plan).execute().await {
        Ok(_) => Ok(()),
        Err(error) if crate::database::is_duplicate(&error) => Err(Error::DuplicatePlan),
        Err(error) => Err(error.into()),
    }
}

/// Overwrites the plan's row with the new state.
pub(super) async fn replace(tx: &mut Tx, plan: &Plan) -> Result<(), Error> {
    bound(tx.query(include_str!("../../sql/update_plan.sql")), plan).execute().await?;
    Ok(())
}

/// Binds the plan's columns, in the order shared by `create_plan.sql` and `update_plan.sql`.
fn bound<'c>(query: Query<'c>, plan: &Plan) -> Query<'c> {
    query
        .bind(plan.tenant.as_str())
        .bind(plan.name.as_str())
        .bind(i64::from(plan.device_limit.0))
        .bind(i64::from(plan.price_cents))
        .bind(plan.when_full.as_str())
        .bind(plan.ttl_seconds.map(i64::from))
        .bind(plan.status.as_str())
        .bind(stored_whole(plan.version))
        .bind(times::stored(plan.updated_at))
        .bind(i64::from(plan.groups.members_max))
        .bind(plan.groups.scope.as_str())
        .bind(plan.groups.same_content)
}
