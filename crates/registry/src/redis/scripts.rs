//! The Lua scripts, and the numbers shared by scripts and node. A new script takes a file, a line in
//! `scripts!`, and its numbers in `words`.

use std::collections::HashMap;
use std::sync::LazyLock;

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{DENIAL_WINDOW, DENIALS_RECORDED_PER_WINDOW_MAX, EndReason, USERS_PER_SESSION_MAX};
use seatkeeper_redis::Script;

use super::keys::KEY_BYTES;
use crate::open_pool::{CLOSING_PAUSE, EMPTY_KEPT};

/// Format of all values in Redis. Buckets of another format are not served: see
/// [`stamp`](super::head::stamp).
pub(super) const FORMAT: u8 = 2;

// Stages of a bucket.
pub(super) const REBUILDING: u8 = 0;
pub(super) const SERVING: u8 = 1;
pub(super) const FILLING: u8 = 2;

/// Bytes of the five numbers at the end of a head: see `lib/bucket.lua`.
pub(super) const HEAD_NUMBERS_BYTES: usize = 30;

/// The latest time that fits into 6 bytes; stands for "never".
pub(super) const NEVER_MILLIS: u64 = (1 << 48) - 1;

/// Maximum number of sessions in a small pool. A small pool is one string, read as a whole by each step.
const SMALL_MAX: usize = 8;
/// Maximum number of sessions ended by one step. Redis serves no other caller during the step, a few
/// milliseconds.
const ENDS_MAX: usize = 256;
/// Maximum number of sessions read by one command.
const READ_MAX: usize = 1_000;
/// Maximum number of sessions compared among those renewed in one millisecond.
const TIED_MAX: usize = 1_000;
/// Maximum number of TTLs in use in one pool.
const TTLS_MAX: usize = 64;
/// Maximum number of events per stream entry of the journal, equal to the maximum of a small pool.
const ENTRY_EVENTS_MAX: usize = SMALL_MAX;
/// Number of entries of a bucket's admission ring: 13 KB per bucket, 3.3 MB for all buckets.
pub(super) const RING_ENTRIES: u64 = 256;
/// Bytes of an entry of an admission ring: see `admissions.lua`.
pub(super) const RING_ENTRY_BYTES: usize = 22 + 2 * KEY_BYTES;
/// Maximum lag of a head's clock mark behind the time of a renewal.
const MARK_LAG_MILLIS: u64 = 250;

// Reasons for a refusal.
pub(super) const NOT_SERVING: i64 = -1;
pub(super) const NOT_OPEN: i64 = -2;
pub(super) const JOURNAL_FULL: i64 = -3;
pub(super) const KEY_NEEDED: i64 = -4;
pub(super) const ASK_ALONE: i64 = -5;

// Outcomes of a claim. Outcomes from `FULL` on are denials.
pub(super) const MAKING_ROOM: i64 = 0;
pub(super) const ADMITTED: i64 = 1;
pub(super) const REFRESHED: i64 = 2;
pub(super) const RESUMED: i64 = 3;
pub(super) const EXISTING: i64 = 4;
pub(super) const FULL: i64 = 5;
pub(super) const OVER: i64 = 6;
pub(super) const CLOSED: i64 = 7;

// Outcomes of a step on one session.
pub(super) const LIVE: i64 = 1;
pub(super) const GONE: i64 = 2;
pub(super) const LEFT: i64 = 3;
pub(super) const MISSING: i64 = 4;

// Kinds of events.
pub(super) const BEGAN: i64 = 1;
pub(super) const ENDED: i64 = 2;
pub(super) const DENIED: i64 = 3;

/// Returns the number of an end reason.
pub(super) const fn reason_number(reason: EndReason) -> i64 {
    match reason {
        EndReason::Released => 1,
        EndReason::Expired => 2,
        EndReason::Evicted => 3,
        EndReason::Superseded => 4,
        EndReason::Upgraded => 5,
        EndReason::Revoked => 6,
        EndReason::EntitlementEnded => 7,
        EndReason::GroupContent => 8,
        EndReason::Moved => 9,
    }
}

// Flags of a stored pool.
pub(super) const HAS_TERMS: u8 = 1;
pub(super) const IS_LARGE: u8 = 2;
pub(super) const HAS_DENIALS: u8 = 4;
pub(super) const IS_EMPTY: u8 = 8;

/// Bytes of encoded terms.
pub(super) const TERMS_BYTES: usize = 24;

/// Added to the number of a session's users if the start follows.
pub(super) const START_FOLLOWS: u8 = 16;

/// Stands for the key of a session known to be absent from a pool.
pub(super) const NO_KEY: &[u8] = b"-";

/// Builds a script from files, and replaces each name in capitals by its value. Lua variables would be
/// created anew at each call.
///
/// The files of `rare`, with a `step` of their own, become the body of the Lua function `rare_step`, which
/// returns that `step`. A command without a rare case then makes none of their functions.
fn script(writes: Writes, [first, rare, last]: [&[&str]; 3], words: &HashMap<&str, String>) -> Script {
    let (first, rare, last) = (first.concat(), rare.concat(), last.concat());
    let rare = match &*rare {
        "" => rare,
        steps => format!("local function rare_step()\n{steps}return step\nend\n"),
    };
    Script::new(writes.first_line().to_owned() + &with_words(&(first + &rare + &last), words))
}

/// The writes of a script, declared to Redis in the script's first line. Redis refuses a script before its
/// first step or never: if memory is full, too few replicas are connected, or a snapshot failed.
#[derive(Clone, Copy, Debug)]
enum Writes {
    /// No writes. The script runs on any readable server.
    Nothing,
    /// Writes no larger than the data that they delete or replace, or ends of live sessions. The script runs
    /// while memory is full.
    InPlace,
    /// Writes that take more memory.
    More,
}

impl Writes {
    const fn first_line(self) -> &'static str {
        match self {
            Self::Nothing => "#!lua flags=no-writes\n",
            Self::InPlace => "#!lua flags=allow-oom\n",
            Self::More => "#!lua\n",
        }
    }
}

fn with_words(source: &str, words: &HashMap<&str, String>) -> String {
    let is_part = |at: char| at.is_ascii_alphanumeric() || at == '_';
    let mut written = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find(is_part) {
        let length = rest[start..].find(|at| !is_part(at)).unwrap_or(rest.len() - start);
        let (before, word) = (&rest[..start], &rest[start..start + length]);
        written.push_str(before);
        written.push_str(words.get(word).map_or(word, String::as_str));
        rest = &rest[start + length..];
    }
    written.push_str(rest);
    written
}

macro_rules! files {
    ($($file:literal),*) => { &[$(include_str!(concat!("scripts/", $file, ".lua"))),*] };
}

macro_rules! scripts {
    ($(
        $(#[$doc:meta])* $name:ident: $writes:ident =
        [$($first:literal),+] $(rarely [$($rare:literal),+] then [$($last:literal),+])?;
    )+) => {
        /// The scripts. A script is built from its files in order.
        #[derive(Debug)]
        pub(super) struct Scripts { $($(#[$doc])* pub(super) $name: Script,)+ }

        impl Scripts {
            fn new() -> Self {
                let words = words();
                Self {
                    $($name: script(
                        Writes::$writes,
                        [files![$($first),+], files![$($($rare),+)?], files![$($($last),+)?]],
                        &words,
                    ),)+
                }
            }
        }
    };
}

/// All scripts, built at first use.
pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(Scripts::new);

scripts! {
    acknowledge: InPlace = ["lib/bucket", "acknowledge", "lib/each"];
    admissions: Nothing = ["lib/bucket", "admissions", "lib/each"];
    claim: More = ["lib/bucket"] rarely ["lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/users", "lib/record", "lib/denials", "lib/due", "lib/rule", "claim"]
        then ["lib/plain", "claim_plain", "lib/each"];
    due_next: InPlace = ["lib/bucket", "due_next", "lib/each"];
    due_now: Nothing = ["lib/bucket", "due_now", "lib/each"];
    end: InPlace = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members", "lib/users",
        "lib/record", "lib/denials", "lib/due", "lib/one_session", "end", "lib/each"];
    end_all: InPlace = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "end_all", "lib/each"];
    expire: InPlace = ["lib/bucket", "expire", "lib/each"];
    heartbeat: InPlace = ["lib/bucket"] rarely ["lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/one_session", "heartbeat"]
        then ["lib/plain", "heartbeat_plain", "lib/each"];
    journal_end: InPlace = ["lib/bucket", "journal_end", "lib/each"];
    journal_read: Nothing = ["lib/bucket", "journal_read", "lib/each"];
    kept: Nothing = ["lib/bucket", "kept", "lib/each"];
    now: InPlace = ["now"];
    open: More = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "lib/new_pool", "lib/restore", "open", "lib/each"];
    rebuild_begin: InPlace = ["rebuild_begin"];
    rebuild_clear: InPlace = ["lib/bucket", "rebuild_clear", "lib/each"];
    rebuild_fill: More = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "lib/new_pool", "lib/restore", "fill", "lib/each"];
    rebuild_finish: InPlace = ["lib/bucket", "rebuild_finish", "lib/each"];
    renew_leases: InPlace = ["renew_leases"];
    session: InPlace = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "lib/one_session", "session", "lib/each"];
    sweep: InPlace = ["lib/bucket", "lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "sweep", "lib/each"];
    view: InPlace = ["lib/bucket"] rarely ["lib/pool", "lib/session", "lib/small", "lib/large", "lib/members",
        "lib/record", "lib/denials", "lib/due", "lib/rule", "view"] then ["lib/plain", "view_plain", "lib/each"];
}

/// Returns the values of the names in capitals: numbers shared by node, scripts and rule, and the keys.
fn words() -> HashMap<&'static str, String> {
    let numbers: &[(&str, i64)] = &[
        ("NOT_SERVING", NOT_SERVING),
        ("NOT_OPEN", NOT_OPEN),
        ("JOURNAL_FULL", JOURNAL_FULL),
        ("KEY_NEEDED", KEY_NEEDED),
        ("ASK_ALONE", ASK_ALONE),
        ("MAKING_ROOM", MAKING_ROOM),
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
        ("FILLING", i64::from(FILLING)),
        ("EXPIRED", reason_number(EndReason::Expired)),
        ("EVICTED", reason_number(EndReason::Evicted)),
        ("SUPERSEDED", reason_number(EndReason::Superseded)),
        ("UPGRADED", reason_number(EndReason::Upgraded)),
        ("ENTITLEMENT_ENDED", reason_number(EndReason::EntitlementEnded)),
        ("NEVER", NEVER_MILLIS as i64),
        ("HEAD_NUMBERS_BYTES", HEAD_NUMBERS_BYTES as i64),
        ("SMALL_MAX", SMALL_MAX as i64),
        ("ENDS_MAX", ENDS_MAX as i64),
        ("EVICTIONS_MAX", i64::from(EVICTIONS_MAX)),
        ("READ_MAX", READ_MAX as i64),
        ("TIED_MAX", TIED_MAX as i64),
        ("TTLS_MAX", TTLS_MAX as i64),
        ("ENTRY_EVENTS_MAX", ENTRY_EVENTS_MAX as i64),
        ("USERS_MAX", USERS_PER_SESSION_MAX as i64),
        ("KEY_BYTES", KEY_BYTES as i64),
        ("TERMS_BYTES", TERMS_BYTES as i64),
        ("START_FOLLOWS", i64::from(START_FOLLOWS)),
        ("HAS_TERMS", i64::from(HAS_TERMS)),
        ("IS_LARGE", i64::from(IS_LARGE)),
        ("HAS_DENIALS", i64::from(HAS_DENIALS)),
        ("IS_EMPTY", i64::from(IS_EMPTY)),
        ("RANGE", 1 << 42),
        ("RING_ENTRIES", RING_ENTRIES as i64),
        ("RING_ENTRY_BYTES", RING_ENTRY_BYTES as i64),
        ("MARK_LAG_MS", MARK_LAG_MILLIS as i64),
        ("DENIAL_WINDOW_MS", DENIAL_WINDOW.as_millis() as i64),
        ("DENIALS_RECORDED_MAX", i64::from(DENIALS_RECORDED_PER_WINDOW_MAX)),
        ("EMPTY_KEPT_MS", EMPTY_KEPT.as_millis() as i64),
        ("CLOSING_PAUSE_MS", CLOSING_PAUSE.as_millis() as i64),
    ];
    let keys = ["HEAD", "DUE", "JOURNAL", "POOL", "SESSIONS", "ORDER", "ADMISSIONS"];
    let mut words: HashMap<_, _> = numbers.iter().map(|&(name, number)| (name, number.to_string())).collect();
    words.extend(keys.into_iter().zip(1..).map(|(name, place)| (name, format!("KEYS[{place}]"))));
    words.insert("NO_KEY", format!("'{}'", NO_KEY.escape_ascii()));
    words.insert("NO_VERSION", format!("'{}'", "\\0".repeat(8)));
    words
}
