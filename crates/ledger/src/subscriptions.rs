//! Subscriptions: which plan a user has, from when until when. The newest one and its plan give the
//! user's pool its limit: see [`Subscriber::entitled`].
//!
//! Each change of a subscription takes the next number of its tenant's changes as its version, and has
//! its record in the entitlement stream of its user's pool, in the same transaction. Subscriptions are
//! never deleted.

mod change;
mod create;
mod read;
mod state;
mod subscription;
mod terms;
mod text;
mod update;
mod write;

pub use change::SubscriptionChange;
pub use create::NewSubscription;
pub use read::SubscriptionFilter;
pub(crate) use state::Granted;
pub use subscription::{Subscription, SubscriptionId, SubscriptionStatus};
pub use terms::{Entitled, Subscriber};
pub(crate) use terms::{Held, NamedVersion, Phase};
