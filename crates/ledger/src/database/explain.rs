//! SQLite's plan of a composed statement, for tests.

use sea_query::{SelectStatement, SqliteQueryBuilder};
use sqlx::{AssertSqlSafe, Row as _};

use super::Pool;
use crate::{Ledger, Settings};

/// Returns the steps of SQLite's plan of a statement, in a new ledger.
pub(crate) async fn sqlite_plan(statement: &SelectStatement) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let Pool::Sqlite(readers) = ledger.readers() else { panic!("the ledger is a file") };
    let (text, _) = statement.build(SqliteQueryBuilder);
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"));
    let steps = sqlx::query(explain).fetch_all(readers).await.unwrap();
    steps.iter().map(|step| step.get("detail")).collect()
}
