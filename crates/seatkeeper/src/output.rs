//! The output of commands: lines and tables for people, JSON for programs.
//!
//! A closed pipe ends no command. The reader has seen enough (`seatkeeper audit verify | head -1`), and the exit code must
//! still tell the outcome of a check, or of a repair.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{Table, presets};
use seatkeeper_core::RegistryTime;
use serde_json::{Value, json};

use crate::api_client::Listed;

/// Prints a line. A closed pipe is no error.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a JSON document.
pub(crate) fn json(value: &Value) -> io::Result<()> {
    line(format_args!("{value:#}"))
}

/// Prints a list as JSON, or by `print_table` with a note if the server has more items.
pub(crate) fn listed<E: From<io::Error>>(
    listed: Listed,
    as_json: bool,
    print_table: impl FnOnce(Value) -> Result<(), E>,
) -> Result<(), E> {
    let Listed { items, more } = listed;
    if as_json {
        return Ok(json(&json!({ "items": items, "more": more }))?);
    }
    print_table(Value::Array(items))?;
    if more {
        line("... and more: raise --limit, or narrow the search")?;
    }
    Ok(())
}

/// Prints a table of plain columns, identical in a terminal, a file and a transcript.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> io::Result<()> {
    let mut table = plain();
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    print_flush_left(table)
}

/// Prints an entry: a line for each name and value.
pub(crate) fn pairs<'n>(pairs: impl IntoIterator<Item = (&'n str, String)>) -> io::Result<()> {
    let mut table = plain();
    for (name, value) in pairs {
        table.add_row([name, &value]);
    }
    print_flush_left(table)
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn print_flush_left(mut table: Table) -> io::Result<()> {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    line(table.trim_fmt())
}

/// Returns a time in RFC 3339.
pub(crate) fn date(time: RegistryTime) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let date = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    date.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The cell of a missing value.
const NONE: &str = "-";

/// Returns the cell of an optional value.
pub(crate) fn cell<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}
