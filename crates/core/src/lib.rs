//! The vocabulary of Seatkeeper and the admission rule.
//!
//! The crate is pure: no I/O, no clock, no async, no randomness. Callers pass in the time and fresh ids, so a
//! table of cases or a property test can walk every path. [`rule::admit`] is the rule. A fourth kind of pool
//! is a new [`PoolKind`] and, if no policy fits, a new [`WhenFull`] or [`WhenHeld`].

mod authority;
mod bucket_set;
mod claim;
mod clock_watch;
mod denials;
mod epoch;
mod event;
mod load_bound;
mod named;
mod pool;
mod pool_id;
pub mod rule;
mod session;
mod session_id;
mod terms;
mod text;
mod time;
mod usage;

pub use authority::{Authority, Reach};
pub use bucket_set::BucketSet;
pub use claim::{Claim, Replacement};
pub use clock_watch::{CLOCK_SETTLING, CLOCK_TOLERANCE, ClockReading, ClockState, ClockWatch};
pub use denials::{DENIAL_WINDOW, DENIALS_RECORDED_PER_WINDOW_MAX, DenialFold, Folded};
pub use epoch::{epoch_after, epoch_counter, epoch_not_before};
pub use event::{Actor, Change, Denied, Device, EndReason, Event, Origin, Particulars};
pub use load_bound::LoadBound;
pub use named::NotNamed;
pub use pool::{Others, Pool};
pub use pool_id::{BUCKETS, Bucket, GROUP_MEMBERS_MAX, PoolId, PoolKind};
pub use rule::{Decision, Denial, Ending, Outcome};
pub use session::{LatestHeartbeat, NoUsers, Session, Tier, USERS_PER_SESSION_MAX, Users};
pub use session_id::{NotASessionId, Region, SessionId};
pub use terms::{Policy, Seats, Standing, Terms, WhenFull, WhenHeld, WhenNamed};
pub use text::{Holder, NAME_BYTES_MAX, NAME_CHARS_MAX, RequestId, TenantId, UserId, is_name};
pub use time::{ESTIMATE_AHEAD_MAX, RegistryTime, Span};
pub use usage::{Metered, Usage, Window};
