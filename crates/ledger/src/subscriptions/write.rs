//! Steps shared by all writes to a subscription.

use seatkeeper_core::{Span, TenantId};

use super::state::State;
use super::{Held, Subscriber, Subscription};
use crate::audit::{Action, EntitlementChange, Stream, next_seq};
use crate::database::{Query, Tx};
use crate::idempotency::{self, Entity, StoredAnswer};
use crate::plans::Plan;
use crate::row::{stored_json, stored_whole};
use crate::{Effect, Error, Write, Written, times};

/// Returns the subscription from the kept answer of an earlier request, if the write is a retry.
pub(super) async fn answered(
    tx: &mut Tx,
    tenant: &TenantId,
    write: &Write<'_>,
) -> Result<Option<Written<Subscription>>, Error> {
    let answered = idempotency::answered::<State>(tx, tenant, Entity::Subscription, write).await?;
    Ok(answered.map(|answered| Written { value: answered.state.restore(tenant), effect: Effect::Replayed }))
}

/// Keeps the answer for a retry.
pub(super) async fn keep(tx: &mut Tx, subscription: &Subscription, write: &Write<'_>) -> Result<(), Error> {
    let answer =
        StoredAnswer { id: subscription.id.to_string(), state: State::from_subscription(subscription) };
    let entity = (Entity::Subscription, Some(subscription.user.as_str()));
    idempotency::keep(tx, &subscription.tenant, entity, &answer, write).await
}

/// Appends the record of a subscription's new state, with the limit granted by the subscription and its plan.
pub(super) async fn record(
    tx: &mut Tx,
    action: Action,
    subscription: &Subscription,
    plan: &Plan,
    write: &Write<'_>,
) -> Result<(), Error> {
    let pool = subscription.pool();
    let subscriber = Subscriber::new(Some(Held::new(subscription, plan)));
    let change = EntitlementChange {
        pool: &pool,
        stream: Stream::Entitlement,
        seq: next_seq(tx, &pool, Stream::Entitlement).await?,
        action,
        limit: subscriber.entitled(write.at, Span::ZERO).terms.limit.0,
        version: subscription.version,
        state: stored_json(&State::from_subscription(subscription))?,
    };
    change.record(tx, write).await
}

impl Held {
    fn new(subscription: &Subscription, plan: &Plan) -> Self {
        let Subscription { status, version, starts_at, ends_at, .. } = subscription;
        Self { status: *status, version: *version, ..Self::by_plan(plan, *starts_at, *ends_at) }
    }
}

/// Inserts the subscription's row.
pub(super) async fn insert(tx: &mut Tx, subscription: &Subscription) -> Result<(), Error> {
    bound(tx.query(include_str!("../../sql/create_subscription.sql")), subscription).execute().await?;
    Ok(())
}

/// Overwrites the subscription's row with the new state.
pub(super) async fn replace(tx: &mut Tx, subscription: &Subscription) -> Result<(), Error> {
    bound(tx.query(include_str!("../../sql/update_subscription.sql")), subscription).execute().await?;
    Ok(())
}

/// Binds the subscription's columns, in the order shared by `create_subscription.sql` and
/// `update_subscription.sql`.
fn bound<'c>(query: Query<'c>, subscription: &Subscription) -> Query<'c> {
    query
        .bind(subscription.id.0)
        .bind(subscription.tenant.as_str())
        .bind(subscription.user.as_str())
        .bind(subscription.plan.as_str())
        .bind(subscription.status.as_str())
        .bind(times::stored(subscription.starts_at))
        .bind(subscription.ends_at.map(times::stored))
        .bind(stored_whole(subscription.version))
        .bind(times::stored(subscription.updated_at))
}
