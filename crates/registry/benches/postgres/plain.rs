//! The baseline: one plain transaction per call, a measure and no design to copy.

use seatkeeper_testbed::postgres::Postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};

const TABLES: &str = "
    CREATE TABLE pairs (pair int PRIMARY KEY, session uuid, last_heartbeat timestamptz);
    INSERT INTO pairs SELECT n, gen_random_uuid(), now() FROM generate_series(0, 9999) n;
    CREATE TABLE audit (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, pair int, what text, at timestamptz)";

pub(crate) struct Plain(PgPool);

impl Plain {
    pub(crate) async fn on(server: &'static Postgres) -> Self {
        let database = Box::leak(Box::new(server.database()));
        let pool = PgPoolOptions::new().max_connections(16).test_before_acquire(false);
        let pool = pool.connect(&database.url()).await.unwrap();
        pool.execute(TABLES).await.unwrap();
        Self(pool)
    }

    pub(crate) async fn claim_and_release(&self, pair: usize) {
        for what in ["begin", "end"] {
            let mut tx = self.0.begin().await.unwrap();
            sqlx::query("SELECT session FROM pairs WHERE pair = $1 FOR UPDATE")
                .bind(pair as i32)
                .fetch_one(&mut *tx)
                .await
                .unwrap();
            sqlx::query("UPDATE pairs SET session = gen_random_uuid(), last_heartbeat = clock_timestamp() WHERE pair = $1")
                .bind(pair as i32)
                .execute(&mut *tx)
                .await
                .unwrap();
            sqlx::query("INSERT INTO audit (pair, what, at) VALUES ($1, $2, clock_timestamp())")
                .bind(pair as i32)
                .bind(what)
                .execute(&mut *tx)
                .await
                .unwrap();
            tx.commit().await.unwrap();
        }
    }

    pub(crate) async fn heartbeat(&self, pair: usize) {
        sqlx::query("UPDATE pairs SET last_heartbeat = clock_timestamp() WHERE pair = $1")
            .bind(pair as i32)
            .execute(&self.0)
            .await
            .unwrap();
    }
}
