//! The operations of a random run.

use seatkeeper_core::{
    Authority, Bucket, Claim, EndReason, Holder, Policy, Reach, RegistryTime, Replacement, Seats, SessionId,
    Span, Standing, TenantId, Terms, Tier, UserId,
};

use super::dice::Dice;
use super::shadow::{Shadow, TENANT};

/// Numbers of holders: few holders that collide, or more than the seats of any pool.
const HOLDERS: [u64; 2] = [6, 24];
/// Exclusive upper bounds of random limits.
const LIMITS: [u64; 4] = [5, 5, 5, 20];
const USERS: [&str; 3] = ["olga", "paul", "quinn"];

/// An operation, complete enough to be repeated.
#[derive(Debug)]
pub(super) enum Op {
    Claim { pool: usize, claim: Claim, policy: Policy },
    Heartbeat { pool: usize, id: SessionId, who: Authority },
    End { pool: usize, id: SessionId, who: Authority, reason: EndReason },
    EndAll { pool: usize, reason: EndReason },
    Revise { pool: usize, terms: Terms },
    Session { pool: usize, id: SessionId, who: Authority },
    View { pool: usize, max: usize },
    Sweep { bucket: Bucket },
    LetPass(Span),
}

impl Op {
    pub(super) fn random(dice: &mut Dice, shadows: &mut [Shadow], now: RegistryTime) -> Self {
        let pool = dice.below(shadows.len() as u64) as usize;
        let shadow = &mut shadows[pool];
        match dice.below(100) {
            0..42 => Self::Claim { pool, claim: claim(dice, shadow), policy: policy(dice, shadow, now) },
            42..62 => Self::Heartbeat { pool, id: shadow.some_session(dice), who: caller(dice) },
            62..70 => {
                let reason = *dice.pick(&[EndReason::Released, EndReason::Revoked]);
                Self::End { pool, id: shadow.some_session(dice), who: caller(dice), reason }
            }
            70 => Self::EndAll { pool, reason: EndReason::Revoked },
            71..74 => Self::Revise { pool, terms: terms(dice, shadow, now) },
            74..80 => Self::Session { pool, id: shadow.some_session(dice), who: caller(dice) },
            80..85 => Self::View { pool, max: dice.below(6) as usize },
            85..89 => Self::Sweep { bucket: shadow.id.bucket() },
            _ => Self::LetPass(Span::from_millis(dice.below(shadow.ttl.as_millis() / 3))),
        }
    }
}

fn holder(dice: &mut Dice) -> Holder {
    let count = *dice.pick(&HOLDERS);
    Holder::fingerprint(&format!("device {}", dice.below(count)), &format!("net {}", dice.below(2)))
}

fn claim(dice: &mut Dice, shadow: &Shadow) -> Claim {
    Claim {
        holder: holder(dice),
        user: (*dice.pick(&USERS)).into(),
        tier: Tier(1 + dice.below(3) as u8),
        session: dice.percent(20).then(|| shadow.some_session(dice)),
        replace: dice
            .percent(15)
            .then(|| Replacement { session: shadow.some_session(dice), is_handed_over: dice.percent(30) }),
    }
}

/// Returns a policy, mostly with the current terms, sometimes with different terms or without terms.
fn policy(dice: &mut Dice, shadow: &mut Shadow, now: RegistryTime) -> Policy {
    let terms = match dice.below(100) {
        0..10 => None,
        10..20 => Some(terms(dice, shadow, now)),
        _ => Some(shadow.today),
    };
    Policy { terms, ..shadow.policy }
}

/// Returns newer terms than the current terms, or older terms of different content.
fn terms(dice: &mut Dice, shadow: &mut Shadow, now: RegistryTime) -> Terms {
    let millis = shadow.ttl.as_millis();
    let ends_in = Span::from_millis(dice.below(millis * 4));
    let newest = shadow.today.version;
    let newer = dice.percent(60);
    let below = *dice.pick(&LIMITS);
    let limit = dice.below(below);
    let terms = Terms {
        version: if newer { newest + 1 } else { newest.saturating_sub(dice.below(3)) },
        limit: Seats(limit as u32),
        ttl: Span::from_millis(*dice.pick(&[millis / 2, millis, millis * 2])),
        ends_at: dice.percent(15).then_some(now + ends_in),
        standing: if dice.percent(10) { Standing::Closed } else { Standing::Open },
    };
    if newer {
        shadow.today = terms;
    }
    terms
}

/// Returns a user or an admin, seldom of another tenant.
fn caller(dice: &mut Dice) -> Authority {
    let tenant: TenantId = if dice.percent(5) { "globex".into() } else { TENANT.into() };
    let user: UserId = (*dice.pick(&USERS)).into();
    let reach = if dice.percent(50) { Reach::Tenant } else { Reach::Own(user) };
    Authority::new(tenant, reach)
}
