//! The confirmed callers of a node.

use super::*;

/// Sessions that heartbeat every 30 s at 33,000 heartbeats a second.
const SESSIONS: u32 = 1_000_000;

fn session(number: u32) -> SessionId {
    format!("{number:08x}-7a1b-8207-9abc-0123456789ab").parse().unwrap()
}

#[test]
fn a_node_keeps_a_million_callers_confirmed() {
    let settings = RegionSettings { heartbeats: HeartbeatForwarding::Batched, ..RegionSettings::default() };
    let batches = HeartbeatBatches::from_settings(&settings).unwrap();
    let token = TokenDigest::new("token");
    (0..SESSIONS).for_each(|number| batches.confirm(session(number), token));
    let forgotten = (0..SESSIONS).filter(|number| !batches.is_confirmed(session(*number), token)).count();
    assert_eq!(forgotten, 0, "each forgotten caller is a request of its own");
    batches.refuse(session(7), token);
    assert!(!batches.is_confirmed(session(7), token) && batches.goes_alone(session(7), token));
    batches.confirm(session(7), token);
    assert!(batches.is_confirmed(session(7), token) && !batches.goes_alone(session(7), token));
    assert!(!batches.is_confirmed(session(8), TokenDigest::new("another token")));
}
