//! How a subscriber behaves as a pool of the engine.

use seatkeeper_core::{Policy, RegistryTime, Span, WhenFull, WhenHeld, WhenNamed};

use crate::app::App;
use crate::auth::Caller;

/// How claims of the caller's devices are decided: by the plan that the caller is subscribed to. Where that
/// cannot be learnt, the pool goes by what it knew last, and nobody is evicted.
pub(super) async fn policy_of(app: &App, caller: &Caller, now: RegistryTime) -> Policy {
    let ttl_default = Span::from_secs(app.settings.devices.ttl_seconds);
    let unknown = Policy {
        terms: None,
        ttl_default,
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Supersede,
    };
    match app.subscribers.of(&caller.tenant, &caller.user).await {
        Ok(subscriber) => {
            let entitled = subscriber.entitled(now, ttl_default);
            Policy { terms: Some(entitled.terms), when_full: entitled.when_full, ..unknown }
        }
        Err(error) => {
            tracing::warn!(causes = error.with_causes(), "a subscriber's plan could not be learnt");
            unknown
        }
    }
}
