//! One PostgreSQL transaction for each acquire and each release: the measure, and no design to be proud of.

use std::time::{Duration, Instant};

use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::error::Error;

pub(crate) struct Plain {
    pool: PgPool,
    concurrency: usize,
}

impl Plain {
    /// In an empty database, by so many callers at once, each with a license of its own.
    pub(crate) async fn on(url: &str, concurrency: usize) -> Result<Self, Error> {
        let options = PgPoolOptions::new().max_connections(concurrency as u32).test_before_acquire(false);
        let pool = options.connect(url).await?;
        pool.execute(include_str!("plain/schema.sql")).await?;
        Ok(Self { pool, concurrency })
    }

    /// How many transactions a second are committed.
    pub(crate) async fn rate(&self, measured: Duration) -> Result<f64, Error> {
        let started = Instant::now();
        let mut callers = JoinSet::new();
        for caller in 0..self.concurrency {
            let pool = self.pool.clone();
            callers.spawn(async move {
                let mut done = 0_u32;
                while started.elapsed() < measured {
                    cycle(&pool, caller as i32).await?;
                    done += 2;
                }
                Ok::<_, sqlx::Error>(done)
            });
        }
        let mut done = 0;
        while let Some(caller) = callers.join_next().await {
            done += caller.map_err(|error| Error::Worthless { why: error.to_string() })??;
        }
        Ok(f64::from(done) / started.elapsed().as_secs_f64())
    }
}

async fn cycle(pool: &PgPool, license: i32) -> Result<(), sqlx::Error> {
    let session = Uuid::new_v4();
    for (statement, action) in [
        (include_str!("plain/begin_session.sql"), "admitted"),
        (include_str!("plain/end_session.sql"), "ended"),
    ] {
        let mut tx = pool.begin().await?;
        sqlx::query(include_str!("plain/hold_license.sql")).bind(license).fetch_one(&mut *tx).await?;
        sqlx::query(statement).bind(session).bind(license).execute(&mut *tx).await?;
        let audit = sqlx::query(include_str!("plain/append_audit.sql"));
        audit.bind(session).bind(license).bind(action).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    Ok(())
}
