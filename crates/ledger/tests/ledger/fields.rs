//! Every field of an event is on record. The patterns below are exhaustive, so a new field does not compile
//! without a column.

use seatkeeper_core::{
    Actor, Change, Denied, Device, EndReason, Event, Origin, Particulars, Seats, Session, Tier,
};
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord, Stream};
use seatkeeper_ledger::sessions::SessionRecord;

use crate::story::{EPOCH, Story, ledger, tenant};

#[tokio::test]
async fn every_field_of_an_event_is_on_record() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    let (tv, mut admitted) = story.admit("tv");
    let Change::Admitted { session, .. } = &mut admitted.change else { panic!("not admitted: {admitted:?}") };
    session.tier = Tier(3);
    let expected_session = session_of(&admitted);
    let ended = story.end(tv, EndReason::Evicted);
    let mut denied = story.deny("phone");
    denied.change = match denied.change {
        Change::Denied(denied) => Change::Denied(Denied { count: 7, folded: true, ..denied }),
        change @ (Change::Admitted { .. } | Change::Ended { .. }) => panic!("not denied: {change:?}"),
    };
    denied.origin = Origin { actor: Actor::System, request: None };

    ledger.apply(std::slice::from_ref(&admitted)).await.unwrap();
    assert_eq!(ledger.session(tv).await.unwrap().unwrap(), expected_session);
    ledger.apply(&[ended.clone(), denied.clone()]).await.unwrap();
    let mut records = ledger.audit(&tenant(), &AuditFilter::default(), None, 10).await.unwrap().items;
    records.reverse();
    let expected: Vec<_> = [admitted, ended, denied]
        .into_iter()
        .zip(&records)
        .map(|(event, got)| record(event, got.id))
        .collect();
    assert_eq!(records, expected);
}

/// Returns the expected record of an event, with an id.
fn record(event: Event, id: u64) -> AuditRecord {
    let Event { pool, seq, epoch, at, live, limit: Seats(limit), version, origin, change } = event;
    assert_eq!(epoch, EPOCH);
    let Origin { actor, request } = origin;
    let actor = match actor {
        Actor::User(user) => format!("user:{user}"),
        Actor::Admin(user) => format!("admin:{user}"),
        Actor::System => "system".to_owned(),
    };
    let record = AuditRecord {
        id,
        at,
        pool,
        stream: Stream::Session,
        seq,
        epoch,
        action: Action::Denied,
        session: None,
        holder: None,
        actor,
        request: request.map(|request| request.as_str().to_owned()),
        reason: None,
        limit,
        version,
        live: Some(live),
        count: 1,
        folded: false,
        user: None,
        tier: None,
        ip: None,
        user_agent: None,
        metadata: None,
        device: None,
        ttl: None,
        last_heartbeat: None,
        expires: None,
        detail: None,
    };
    match change {
        Change::Admitted { session, expires, particulars } => {
            let Session { id, holder, users, started: _, last_heartbeat, ttl, tier } = *session;
            let Particulars { ip, user_agent, metadata, device } = *particulars;
            AuditRecord {
                action: Action::Admitted,
                session: Some(id),
                holder: Some(holder),
                user: Some(users.first().clone()),
                tier: Some(tier),
                ip: ip.map(|ip| ip.to_string()),
                user_agent: user_agent.map(String::from),
                metadata: metadata.map(String::from),
                device: device.inspect(|Device { kind: _, name: _ }| ()),
                ttl: Some(ttl),
                last_heartbeat: Some(last_heartbeat),
                expires: Some(expires),
                ..record
            }
        }
        Change::Ended { session, holder, tier, reason, last_heartbeat, expires } => AuditRecord {
            action: Action::Ended,
            session: Some(session),
            holder: Some(holder),
            tier: Some(tier),
            reason: Some(reason.as_str().to_owned()),
            last_heartbeat: Some(last_heartbeat),
            expires: Some(expires),
            ..record
        },
        Change::Denied(Denied { holder, why, count, folded }) => AuditRecord {
            holder: Some(holder),
            reason: Some(why.as_str().to_owned()),
            count,
            folded,
            ..record
        },
    }
}

/// Returns the expected session of an admission.
fn session_of(event: &Event) -> SessionRecord {
    let Change::Admitted { session, expires, particulars } = &event.change else {
        panic!("not an admission: {event:?}")
    };
    SessionRecord {
        pool: event.pool.clone(),
        session: Session::clone(session),
        expires: *expires,
        ended: None,
        particulars: Particulars::clone(particulars),
    }
}
