//! The live sessions of a pool as the registry holds them, with or without a record in the ledger.

use std::collections::HashMap;

use seatkeeper_core::{Authority, PoolId, SessionId};
use seatkeeper_ledger::sessions::SessionRecord;
use seatkeeper_registry::Live;

use crate::app::App;
use crate::error::Error;
use crate::http::Page;
use crate::session_answer::SessionAnswer;

/// Maximum of sessions in a pool listed by the registry's view.
const VIEWED_MAX: usize = 1_000;

/// Returns a cursor page of the pool's seat-holding sessions visible to the caller, the newest first. The
/// registry decides on membership. A session without a record, as after an outage of the ledger, lacks only
/// the particulars sent by its client. Returns `None` for a pool too large for the view.
pub(crate) async fn held_sessions(
    app: &App,
    pool: &PoolId,
    who: &Authority,
    cursor: Option<SessionId>,
    limit: u32,
) -> Result<Option<Page<SessionAnswer>>, Error> {
    let Some(view) = app.engine.view(pool, VIEWED_MAX).await? else {
        return Ok(Some(Page { items: Vec::new(), next_cursor: None }));
    };
    if view.live as usize > view.sessions.len() {
        return Ok(None);
    }
    let is_behind = |live: &Live| cursor.is_none_or(|cursor| live.session.id < cursor);
    let mut held: Vec<Live> =
        view.sessions.into_iter().filter(|live| is_behind(live) && who.covers(pool, &live.session)).collect();
    held.sort_unstable_by_key(|live| std::cmp::Reverse(live.session.id));
    let has_more = held.len() > limit as usize;
    held.truncate(limit as usize);
    let next = held.last().filter(|_| has_more).map(|live| live.session.id.to_string());

    let records = app.ledger.live_sessions_of(pool, VIEWED_MAX).await.map_err(Error::Ledger)?;
    let records: HashMap<_, _> = records.into_iter().map(|record| (record.session.id, record)).collect();
    let answer = |live: &Live| match records.get(&live.session.id) {
        Some(record) => SessionAnswer::new(record, Some(live), who),
        None => SessionAnswer::new(&unrecorded(live), Some(live), who),
    };
    Ok(Some(Page { items: held.iter().map(answer).collect(), next_cursor: next }))
}

fn unrecorded(live: &Live) -> SessionRecord {
    SessionRecord {
        pool: live.pool.clone(),
        session: live.session.clone(),
        expires: live.expires,
        ended: None,
        particulars: Default::default(),
    }
}
