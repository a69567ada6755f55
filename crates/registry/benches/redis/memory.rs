//! Memory of a live session in Redis, with the due-index and with a drained journal.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use crate::stage::{Kind, Stage};

const AT_A_TIME: usize = 64;

/// Number of sessions filled between two drains of the journal.
const DRAINED_EVERY: usize = 50_000;

pub(crate) async fn measure(sessions: usize) {
    println!("Redis's memory for {sessions} live sessions, in bytes each");
    let shapes = [
        ("4 devices per subscriber", Kind::Household { devices: 4 }, 4, 180.0),
        ("1,000 seats per license", Kind::License { seats: 1_000 }, 1_000, 260.0),
        ("1 seat per license", Kind::License { seats: 1 }, 1, 400.0),
    ];
    for (name, kind, per_pool, most) in shapes {
        let stage = Arc::new(Stage::start().await);
        let empty = stage.memory_bytes().await;
        let pools = sessions / per_pool;
        let drained_every = DRAINED_EVERY.div_ceil(per_pool);
        for from in (0..pools).step_by(drained_every) {
            let filled = stream::iter(from..pools.min(from + drained_every)).map(|number| {
                let stage = Arc::clone(&stage);
                async move {
                    let pool = kind.pool(number);
                    stage.open(&pool, kind).await;
                    for holder in 0..per_pool {
                        stage.admit(&pool, kind, number * per_pool + holder).await;
                    }
                }
            });
            filled.buffer_unordered(AT_A_TIME).for_each(|()| async {}).await;
            stage.drain().await;
        }
        let each = (stage.memory_bytes().await - empty) / (pools * per_pool) as f64;
        println!("  {name:<28} {each:>6.0} of {most} at most");
    }
}
