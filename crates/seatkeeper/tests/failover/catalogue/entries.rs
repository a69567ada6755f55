//! The entries of the catalogue, a file for each subject, and the effects that entries share.

mod clocks;
mod flapping;
mod ledger;
mod network;
mod nodes;
mod partitions;
mod postgres_alone;
mod redis;

use super::Lapse::{Nothing, OneMasterWhileItLasts, UpTo, WhileItLasts};
use super::{Effect, Fault};

const NOTHING: Effect = Effect { admissions: Nothing, heartbeats: Nothing, afterwards: 1 };

/// The effect of a rebuild of buckets.
const REBUILD: Effect = Effect { admissions: UpTo(5), heartbeats: UpTo(5), afterwards: 5 };

/// The effect of a fallback on licenses: the ledger's database serves licenses in place of Redis, and hands
/// them back.
const FALLBACK_LICENSES: Effect = Effect { admissions: UpTo(6), heartbeats: UpTo(6), afterwards: 5 };

/// The effect of a fallback on devices: no store admits devices in place of Redis, but live sessions go on.
const FALLBACK_DEVICES: Effect = Effect { admissions: WhileItLasts, heartbeats: UpTo(6), afterwards: 5 };

/// The effect of a fallback on the devices of one master of a Redis Cluster.
const ONE_MASTER_DEVICES: Effect = Effect { admissions: OneMasterWhileItLasts, ..FALLBACK_DEVICES };

/// The effects of a fallback decided late: by nodes that have just started with closed circuit breakers, or of a
/// Redis that still answers some requests.
const LATE_FALLBACK_LICENSES: Effect = Effect { admissions: UpTo(12), heartbeats: UpTo(12), afterwards: 5 };

const LATE_FALLBACK_DEVICES: Effect =
    Effect { admissions: WhileItLasts, heartbeats: UpTo(12), afterwards: 5 };

/// The effects of a Redis that returns and is away again: the last return waits until Redis has been in reach for
/// 10 s.
const FLAPPING_LICENSES: Effect = LATE_FALLBACK_LICENSES;

const FLAPPING_DEVICES: Effect = Effect { afterwards: 15, ..LATE_FALLBACK_DEVICES };

/// The effect of a ledger that cannot commit.
const WITHOUT_LEDGER: Effect = Effect { admissions: WhileItLasts, heartbeats: Nothing, afterwards: 5 };

/// The effect of one broken node: the other nodes serve, and a client may wait for a timeout at the broken
/// node.
const ONE_NODE: Effect = Effect { admissions: UpTo(8), heartbeats: UpTo(5), afterwards: 2 };

/// The effect of two broken nodes: a client may wait for a timeout at each.
const TWO_NODES: Effect = Effect { admissions: UpTo(11), heartbeats: UpTo(8), afterwards: 2 };

/// The effect of a slow network: requests are late, and some time out.
const SLOW: Effect = Effect { admissions: UpTo(6), heartbeats: UpTo(5), afterwards: 2 };

/// The effect of a promoted PostgreSQL standby: the fault ends with the promotion, and a rebuild follows.
const PROMOTED_LEDGER: Effect = Effect { admissions: UpTo(2), heartbeats: UpTo(2), afterwards: 5 };

/// The effect of a clock that is doubted for a second, and then right again.
const DOUBTED: Effect = Effect { admissions: UpTo(2), heartbeats: UpTo(2), afterwards: 3 };

/// The effect of a clock that was behind and is right again: a jump forward, which has to settle before a rebuild.
const SETTLES: Effect = Effect { admissions: Nothing, heartbeats: Nothing, afterwards: 6 };

/// The effect of a bad network to the only store: some requests are answered in time, and the rest once the network
/// is well.
const HARDLY_SERVED: Effect = Effect { admissions: UpTo(30), heartbeats: UpTo(30), afterwards: 5 };

const DOWN: Effect = Effect { admissions: WhileItLasts, heartbeats: WhileItLasts, afterwards: 5 };

const ALL: &str = "all";

const NOTHING_TO_DO: &str = "nothing";

const LOOK_AT_NETWORK: &str = "look at the network";

const SET_CLOCK: &str = "set the clock of the host right";

/// The faults of each subject, in the order of the table.
const SUBJECTS: [&[Fault]; 8] = [
    redis::FAULTS,
    clocks::FAULTS,
    nodes::FAULTS,
    network::FAULTS,
    flapping::FAULTS,
    partitions::FAULTS,
    ledger::FAULTS,
    postgres_alone::FAULTS,
];

/// Returns the entries, in the order of the table.
pub(super) fn faults() -> impl Iterator<Item = &'static Fault> {
    SUBJECTS.into_iter().flatten()
}
