//! Compares events with their pool's chain: event n + 1 follows event n, without a gap, and retention has cut the
//! chain at a number.

use std::collections::{HashMap, HashSet};

use seatkeeper_core::{Event, PoolId};

use crate::Error;
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::Tx;
use crate::row::{Fields, stored_whole};

const ROWS_MAX: usize = 256;

static MISSING: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../sql/missing_place.sql"), 4, ROWS_MAX));

static CUTS: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../sql/pool_cuts.sql"), 3, ROWS_MAX));

/// Checks that the event before each event is in the batch or on record. A gap gives
/// [`Error::Contradiction`].
pub(crate) async fn continues(tx: &mut Tx, events: &[Event]) -> Result<(), Error> {
    for (statement, chunk) in MISSING.cut_filled(tx.dialect(), &places_before(events)) {
        let query = chunk
            .fold(tx.query(statement), |query, (pool, seq)| query.bind_pool(pool).bind(stored_whole(*seq)));
        if let Some(missing) = query.fetch_optional().await? {
            let fields = Fields(&missing);
            return Err(Error::Contradiction {
                pool: Box::new(fields.pool()?),
                seq: fields.whole("seq")? + 1,
            });
        }
    }
    Ok(())
}

/// Returns the numbers at which retention has cut the pools of `events`. Every event up to the cut was on record once.
pub(crate) async fn cuts(tx: &mut Tx, events: &[Event]) -> Result<HashMap<PoolId, u64>, Error> {
    let pools: Vec<_> = events.iter().map(|event| &event.pool).collect::<HashSet<_>>().into_iter().collect();
    let mut cuts = HashMap::new();
    for (statement, chunk) in CUTS.cut_filled(tx.dialect(), &pools) {
        let query = chunk.fold(tx.query(statement), |query, pool| query.bind_pool(pool));
        for row in query.fetch_all().await? {
            let fields = Fields(&row);
            cuts.insert(fields.pool()?, fields.whole("seq")?);
        }
    }
    Ok(cuts)
}

/// Returns the numbers preceding the events, except for numbers inside the batch.
pub(crate) fn places_before(events: &[Event]) -> Vec<(&PoolId, u64)> {
    let mut latest = HashMap::new();
    let mut places = Vec::new();
    for event in events {
        let before = event.seq.saturating_sub(1);
        if latest.insert(&event.pool, event.seq).unwrap_or_default() != before && before > 0 {
            places.push((&event.pool, before));
        }
    }
    places
}
