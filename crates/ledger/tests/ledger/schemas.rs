//! The two databases have the same tables.

use std::collections::BTreeSet;

use seatkeeper_ledger::{Ledger, Settings};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

use crate::place::TestLedger;

/// Each column of each table, with nullability and type. `this_ledger` is a view in both databases.
const COLUMNS_OF_SQLITE: &str = "
    SELECT t.name || '.' || c.name || CASE WHEN c.\"notnull\" OR c.pk > 0 THEN ' must be ' ELSE ' may be ' END
        || lower(c.type) AS line
    FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE '_sqlx%'";
const COLUMNS_OF_POSTGRES: &str = "
    SELECT table_name || '.' || column_name || CASE is_nullable WHEN 'NO' THEN ' must be ' ELSE ' may be ' END
        || CASE data_type
            WHEN 'bigint' THEN 'integer'
            WHEN 'boolean' THEN 'integer'
            WHEN 'timestamp with time zone' THEN 'text'
            WHEN 'uuid' THEN 'blob'
            WHEN 'bytea' THEN 'blob'
            ELSE data_type
        END AS line
    FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name NOT LIKE '\\_sqlx%' AND table_name NOT IN
        ('live_sessions', 'this_ledger', 'known_homes')";

/// The columns of the live sessions, a table on PostgreSQL and a view of `sessions` on SQLite.
const LIVE_ON_SQLITE: &str = "SELECT name AS line FROM pragma_table_info('live_sessions')";
const LIVE_ON_POSTGRES: &str =
    "SELECT column_name::text AS line FROM information_schema.columns WHERE table_name = 'live_sessions'";

/// The columns of each unique index in order, with a mark for partial indexes. Unique indexes of
/// `live_sessions` on PostgreSQL correspond to partial indexes of `sessions` on SQLite.
const UNIQUE_OF_SQLITE: &str = "
    SELECT i.\"table\" || ' (' || i.columns || ')' || i.part AS line
    FROM (
        SELECT t.name AS \"table\", group_concat(c.name, ', ') AS columns,
            CASE WHEN i.partial THEN ' of some rows' ELSE '' END AS part
        FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE '_sqlx%' AND i.\"unique\"
        GROUP BY t.name, i.name
        UNION
        SELECT t.name, c.name, ''
        FROM pragma_table_list AS t, pragma_table_info(t.name) AS c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name NOT LIKE '_sqlx%'
          AND c.pk = 1 AND c.type = 'INTEGER' AND NOT EXISTS (
              SELECT 1 FROM pragma_table_info(t.name) AS other WHERE other.pk > 1
          )
    ) AS i";
const UNIQUE_OF_POSTGRES: &str = "
    SELECT CASE t.relname WHEN 'live_sessions' THEN 'sessions' ELSE t.relname END
        || ' (' || string_agg(a.attname, ', ' ORDER BY k.place) || ')'
        || CASE WHEN i.indpred IS NULL AND t.relname <> 'live_sessions' THEN '' ELSE ' of some rows' END AS line
    FROM pg_index AS i
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    JOIN pg_class AS t ON t.oid = i.indrelid
    WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace AND t.relname NOT LIKE '\\_sqlx%'
      AND NOT (t.relname = 'live_sessions' AND i.indisprimary)
    GROUP BY i.indexrelid, t.relname, i.indpred";

#[tokio::test]
async fn the_tables_of_the_two_databases_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let place = TestLedger::new();
    let _sqlite = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let _postgres = Ledger::open(Settings::new(place.location())).await.unwrap();
    let mut sqlite =
        SqliteConnectOptions::new().filename(dir.path().join("ledger.db")).connect().await.unwrap();
    let mut postgres = place.connect().await;
    for (of_sqlite, of_postgres, many) in [
        (COLUMNS_OF_SQLITE, COLUMNS_OF_POSTGRES, 100),
        (LIVE_ON_SQLITE, LIVE_ON_POSTGRES, 5),
        (UNIQUE_OF_SQLITE, UNIQUE_OF_POSTGRES, 15),
    ] {
        let there = sqlx::query(of_sqlite).fetch_all(&mut sqlite).await.unwrap();
        let there: BTreeSet<String> = there.iter().map(|row| row.get("line")).collect();
        let here = sqlx::query(of_postgres).fetch_all(&mut postgres).await.unwrap();
        let here: BTreeSet<String> = here.iter().map(|row| row.get("line")).collect();
        assert!(there.len() > many, "{there:#?}");
        let only: Vec<_> = there.symmetric_difference(&here).collect();
        assert!(only.is_empty(), "only in one of them: {only:#?}");
    }
}
