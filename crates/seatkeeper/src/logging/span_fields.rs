//! The fields of a span, as JSON.

use std::fmt;

use serde::Serializer as _;
use tracing::span::Record;
use tracing_serde::SerdeMapVisitor;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FormatFields, FormattedFields};

/// Formats the fields of a span as a JSON object.
///
/// Each request opens a span, and few requests are logged. The library's `JsonFields` collects the fields in a sorted map
/// first, and parses its own output when a field is added; `SpanFields` writes each field at once.
#[derive(Debug, Default)]
pub(super) struct SpanFields;

impl<'writer> FormatFields<'writer> for SpanFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        writer.write_str(&object(fields)?)
    }

    fn add_fields(&self, current: &'writer mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let (known, added) = (&mut current.fields, object(fields)?);
        if known.len() <= EMPTY.len() {
            *known = added;
        } else if added.len() > EMPTY.len() {
            // The members of the second object become members of the first.
            known.pop();
            known.push(',');
            known.push_str(&added[1..]);
        }
        Ok(())
    }
}

/// Returns the fields as a JSON object.
fn object<R: RecordFields>(fields: R) -> Result<String, fmt::Error> {
    let mut json = Vec::with_capacity(FIELDS_BYTES);
    let mut serializer = serde_json::Serializer::new(&mut json);
    let map = serializer.serialize_map(None).map_err(|_| fmt::Error)?;
    let mut visitor = SerdeMapVisitor::new(map);
    fields.record(&mut visitor);
    visitor.finish().map_err(|_| fmt::Error)?;
    String::from_utf8(json).map_err(|_| fmt::Error)
}

/// A JSON object without members.
const EMPTY: &str = "{}";

/// Initial capacity in bytes, enough for the fields of a request.
const FIELDS_BYTES: usize = 192;

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::SpanFields;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("a log").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_in_a_span_has_the_fields_of_the_span() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let layer = layer.json().flatten_event(true).with_span_list(false).fmt_fields(SpanFields);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("request", request.id = "7", route = %"/a\"b", status = Empty);
            let _entered = span.enter();
            tracing::info!("first");
            span.record("status", 503);
            tracing::info!("second");
        });
        let log = lines.0.lock().expect("a log");
        let lines: Vec<Value> = serde_json::Deserializer::from_slice(&log)
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("lines of JSON");
        let [first, second] = lines.as_slice() else { panic!("two lines: {lines:?}") };
        assert_eq!(first["span"]["request.id"], "7");
        assert_eq!(first["span"]["route"], "/a\"b");
        assert_eq!(first["span"].get("status"), None);
        assert_eq!(second["span"]["status"], 503);
        assert_eq!(second["span"]["request.id"], "7");
    }
}
