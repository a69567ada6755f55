//! The scripts, in files of their own, and the numbers that both sides go by.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use seatkeeper_core::{DENIAL_WINDOW, DENIALS_RECORDED_PER_WINDOW_MAX, EndReason, USERS_PER_SESSION_MAX};

use super::keys::KEY_BYTES;
use crate::open_pool::{CLOSING_PAUSE, EMPTY_KEPT};

/// The format of all that is kept in Redis. Another one is not served: see [`stamp`](super::stamp).
pub(super) const FORMAT: u8 = 1;

/// No time that is written in 6 bytes is later.
pub(super) const NEVER_MILLIS: u64 = (1 << 48) - 1;

/// Up to so many sessions a pool is one string, and each step reads them all.
const SMALL_MAX: usize = 8;
/// Sessions that end in one step, while all others wait: a few milliseconds.
const ENDS_MAX: usize = 256;
/// Sessions that are read by one command.
const READ_MAX: usize = 1_000;
/// Sessions renewed in one millisecond that are put in order.
const TIED_MAX: usize = 1_000;
/// TTLs in use in one pool.
const TTLS_MAX: usize = 64;
/// How far the clock's high-water mark may lag behind what a heartbeat was told.
const MARK_LAG_MILLIS: u64 = 250;

// Why there is no answer.
pub(super) const NOT_SERVING: i64 = -1;
pub(super) const NOT_OPEN: i64 = -2;
pub(super) const JOURNAL_FULL: i64 = -3;
pub(super) const KEY_NEEDED: i64 = -4;

// What came of a claim. From FULL on, it is denied.
pub(super) const ADMITTED: i64 = 1;
pub(super) const REFRESHED: i64 = 2;
pub(super) const RESUMED: i64 = 3;
pub(super) const EXISTING: i64 = 4;
pub(super) const FULL: i64 = 5;
pub(super) const OVER: i64 = 6;
pub(super) const CLOSED: i64 = 7;

// What was found of a session.
pub(super) const LIVE: i64 = 1;
pub(super) const GONE: i64 = 2;
pub(super) const LEFT: i64 = 3;
pub(super) const MISSING: i64 = 4;

// Kinds of events.
pub(super) const BEGAN: i64 = 1;
pub(super) const ENDED: i64 = 2;
pub(super) const DENIED: i64 = 3;

/// The number of a reason.
pub(super) const fn reason_number(reason: EndReason) -> i64 {
    match reason {
        EndReason::Released => 1,
        EndReason::Expired => 2,
        EndReason::Evicted => 3,
        EndReason::Superseded => 4,
        EndReason::Upgraded => 5,
        EndReason::Revoked => 6,
        EndReason::EntitlementEnded => 7,
    }
}

/// Stands for the key of a session that is known not to be in a pool.
pub(super) const NO_KEY: &[u8] = b"-";

/// A script, ready to be called by its digest.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) source: String,
    pub(super) sha: String,
}

impl Script {
    fn of(parts: &[&str]) -> Self {
        let source = [constants().as_str(), &parts.concat()].concat();
        let sha = digest(&SHA1_FOR_LEGACY_USE_ONLY, source.as_bytes());
        let sha = sha.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { source, sha }
    }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = [$($file:literal),+];)+) => {
        /// Every script, each made of its files in this order.
        #[derive(Debug)]
        pub(super) struct Scripts { $($(#[$doc])* pub(super) $name: Script,)+ }

        impl Scripts {
            fn new() -> Self {
                Self { $($name: Script::of(&[$(include_str!(concat!("scripts/", $file, ".lua"))),+]),)+ }
            }
        }
    };
}

/// Every script.
pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(Scripts::new);

scripts! {
    acknowledge = ["lib/bucket", "acknowledge"];
    claim = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "claim"];
    due_next = ["lib/bucket", "due_next"];
    due_now = ["lib/bucket", "due_now"];
    end = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "end"];
    end_all = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "end_all"];
    heartbeat = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record",
        "lib/denials", "lib/due", "heartbeat"];
    journal_end = ["lib/bucket", "journal_end"];
    journal_read = ["lib/bucket", "journal_read"];
    now = ["now"];
    open = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "open", "lib/restore"];
    rebuild_begin = ["rebuild_begin"];
    rebuild_clear = ["lib/bucket", "rebuild_clear"];
    rebuild_fill = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record",
        "lib/denials", "lib/due", "lib/rule", "fill", "lib/restore"];
    rebuild_finish = ["lib/bucket", "rebuild_finish"];
    session = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "session"];
    sweep = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "sweep"];
    view = ["lib/bucket", "lib/pool", "lib/session", "lib/find", "lib/change", "lib/record", "lib/denials",
        "lib/due", "lib/rule", "view"];
}

/// The first lines of every script: what this side and that one, and the rule, agree upon.
fn constants() -> String {
    let numbers: &[(&str, i64)] = &[
        ("NOT_SERVING", NOT_SERVING),
        ("NOT_OPEN", NOT_OPEN),
        ("JOURNAL_FULL", JOURNAL_FULL),
        ("KEY_NEEDED", KEY_NEEDED),
        ("ADMITTED", ADMITTED),
        ("REFRESHED", REFRESHED),
        ("RESUMED", RESUMED),
        ("EXISTING", EXISTING),
        ("FULL", FULL),
        ("OVER", OVER),
        ("CLOSED", CLOSED),
        ("LIVE", LIVE),
        ("GONE", GONE),
        ("LEFT", LEFT),
        ("MISSING", MISSING),
        ("BEGAN", BEGAN),
        ("ENDED", ENDED),
        ("DENIED", DENIED),
        ("EXPIRED", reason_number(EndReason::Expired)),
        ("EVICTED", reason_number(EndReason::Evicted)),
        ("SUPERSEDED", reason_number(EndReason::Superseded)),
        ("UPGRADED", reason_number(EndReason::Upgraded)),
        ("ENTITLEMENT_ENDED", reason_number(EndReason::EntitlementEnded)),
        ("NEVER", NEVER_MILLIS as i64),
        ("SMALL_MAX", SMALL_MAX as i64),
        ("ENDS_MAX", ENDS_MAX as i64),
        ("READ_MAX", READ_MAX as i64),
        ("TIED_MAX", TIED_MAX as i64),
        ("TTLS_MAX", TTLS_MAX as i64),
        ("USERS_MAX", USERS_PER_SESSION_MAX as i64),
        ("KEY_BYTES", KEY_BYTES as i64),
        ("TERMS_BYTES", 24),
        ("MARK_LAG_MS", MARK_LAG_MILLIS as i64),
        ("DENIAL_WINDOW_MS", DENIAL_WINDOW.as_millis() as i64),
        ("DENIALS_RECORDED_MAX", i64::from(DENIALS_RECORDED_PER_WINDOW_MAX)),
        ("EMPTY_KEPT_MS", EMPTY_KEPT.as_millis() as i64),
        ("CLOSING_PAUSE_MS", CLOSING_PAUSE.as_millis() as i64),
    ];
    let mut lines = String::new();
    for (name, number) in numbers {
        lines.push_str(&format!("local {name} = {number}\n"));
    }
    lines.push_str("local NO_KEY, NO_VERSION = '-', string.rep('\\0', 8)\n");
    lines
}
