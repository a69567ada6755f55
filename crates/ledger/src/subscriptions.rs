//! Subscriptions: a user's plan between a start and an end. The newest subscription and its plan give the
//! user's pool its limit, by [`Subscriber::entitled`].
//!
//! Each change of a subscription takes the tenant's next version number, and appends a record to the
//! entitlement stream of the user's pool in the same transaction. Subscriptions are never deleted.

mod arrive;
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
