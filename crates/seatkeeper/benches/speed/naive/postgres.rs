//! A store in PostgreSQL with one transaction per request.

use std::time::{Duration, Instant};

use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgConnection, PgPool};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Acquire, SEATS, Store};
use crate::error::Error;

/// Returns the key of a license. The schema creates numbers 0 to 999.
pub(crate) fn license_key(number: usize) -> String {
    format!("naive-{number}")
}

#[derive(Clone)]
pub(crate) struct Postgres(PgPool);

impl Postgres {
    /// Creates the schema in an empty database, and opens a pool of `connections`.
    pub(crate) async fn create(url: &str, connections: u32) -> Result<Self, Error> {
        let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
        let pool = options.connect(url).await?;
        pool.execute(include_str!("postgres/schema.sql")).await?;
        Ok(Self(pool))
    }

    /// Measures transactions per second without a server: `callers` tasks take and give back seats, spread
    /// over `licenses` licenses.
    pub(crate) async fn rate(
        &self,
        callers: usize,
        licenses: usize,
        measured: Duration,
    ) -> Result<f64, Error> {
        let started = Instant::now();
        let mut asking = JoinSet::new();
        for caller in 0..callers {
            let store = self.clone();
            let ask = Acquire {
                license_key: license_key(caller % licenses),
                machine_id: format!("machine-{caller}"),
            };
            asking.spawn(async move {
                let mut done = 0_u32;
                while started.elapsed() < measured {
                    let (session, _) = store.take_seat(&ask).await?;
                    store.give_back(session).await?;
                    done += 2;
                }
                Ok::<_, sqlx::Error>(done)
            });
        }
        let mut done = 0;
        while let Some(caller) = asking.join_next().await {
            done += caller.map_err(|error| Error::Worthless { why: error.to_string() })??;
        }
        Ok(f64::from(done) / started.elapsed().as_secs_f64())
    }
}

impl Store for Postgres {
    async fn take_seat(&self, ask: &Acquire) -> Result<(Uuid, i64), sqlx::Error> {
        let session = Uuid::new_v4();
        let mut tx = self.0.begin().await?;
        let hold = sqlx::query(include_str!("postgres/hold_license.sql"));
        hold.bind(&ask.license_key).fetch_one(&mut *tx).await?;
        let live = sqlx::query_scalar(include_str!("live.sql"));
        let live: i64 = live.bind(&ask.license_key).fetch_one(&mut *tx).await?;
        if live >= SEATS {
            return Err(sqlx::Error::RowNotFound);
        }
        sqlx::query(include_str!("postgres/begin_session.sql"))
            .bind(session)
            .bind(&ask.license_key)
            .bind(&ask.machine_id)
            .execute(&mut *tx)
            .await?;
        audit(&mut tx, session, "admitted").await?;
        tx.commit().await?;
        Ok((session, live + 1))
    }

    async fn give_back(&self, session: Uuid) -> Result<(), sqlx::Error> {
        let mut tx = self.0.begin().await?;
        sqlx::query(include_str!("postgres/end_session.sql")).bind(session).execute(&mut *tx).await?;
        audit(&mut tx, session, "ended").await?;
        tx.commit().await
    }
}

async fn audit(tx: &mut PgConnection, session: Uuid, action: &str) -> Result<(), sqlx::Error> {
    let audit = sqlx::query(include_str!("postgres/append_audit.sql"));
    audit.bind(session).bind(action).execute(tx).await.map(drop)
}
