//! The rules of serving a bucket. A test can switch each rule off.

/// The rules in force.
#[derive(Clone, Copy, Debug)]
pub struct BucketRules {
    /// A node stops answering at the end of its epoch lease. Otherwise the node answers by the epoch of its
    /// last reading.
    pub epoch_lease_ends: bool,
    /// Redis counts as reachable if it takes a write. Otherwise an answer to a read is enough.
    pub reach_is_a_write: bool,
    /// A breaker closes by quick surveys only, and stays closed in a fallback by quick surveys only. Otherwise a slow
    /// survey counts as well as a quick survey.
    pub recovery_is_quick: bool,
    /// A script serves a bucket only within the bucket's lease.
    pub bucket_lease: bool,
    /// Only a node with an epoch lease renews the bucket's lease.
    pub renewal_needs_epoch_lease: bool,
    /// A rebuild gives each session a full TTL. Otherwise a session still in Redis keeps the rest of its TTL.
    pub rebuild_renews_ttl: bool,
    /// A rebuild finishes only soon after its fill. Otherwise the limit of a whole rebuild holds.
    pub finish_follows_fill: bool,
    /// A node reads the identity of Redis every second, and before a rebuild lets the bucket serve. Otherwise
    /// the node reads the identity once per connection.
    pub identity_is_read_again: bool,
    /// A jumped clock is not trusted until the clock has settled near the node's own.
    pub clock_must_settle: bool,
    /// A rebuild begins only if the clock has not jumped since the survey.
    pub begin_checks_clock: bool,
    /// The PostgreSQL registry follows the clock of its server only within a lease.
    pub standby_lease: bool,
}

impl BucketRules {
    /// Every rule.
    pub const ALL: Self = Self {
        epoch_lease_ends: true,
        reach_is_a_write: true,
        recovery_is_quick: true,
        bucket_lease: true,
        renewal_needs_epoch_lease: true,
        rebuild_renews_ttl: true,
        finish_follows_fill: true,
        identity_is_read_again: true,
        clock_must_settle: true,
        begin_checks_clock: true,
        standby_lease: true,
    };
}
