//! The request body of a batch.

use seatkeeper_ledger::usage::{DueBatch, UsageRecord};
use serde::Serialize;
use uuid::Uuid;

use crate::settings::SinkFormat;
use crate::times::text_of;
use crate::usage::Amount;

/// The `type` of the CloudEvents.
const EVENT_TYPE: &str = "seatkeeper.capacity.usage";

/// A batch, serialised.
pub(super) struct Body {
    pub(super) content_type: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// The parts common to all records of a batch.
struct Common<'a> {
    batch: &'a DueBatch,
    window_start: String,
    window_end: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    user_object_id: Uuid,
    tenant_object_id: &'a str,
    capacity_id: Uuid,
    usage: Amount,
    window_start_utc: &'a str,
    window_end_utc: &'a str,
    record_id: Uuid,
}

/// A CloudEvent (version 1.0).
#[derive(Serialize)]
struct Event<'a> {
    specversion: &'static str,
    id: Uuid,
    source: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// The session id.
    subject: Uuid,
    /// The end of the window.
    time: &'a str,
    datacontenttype: &'static str,
    data: Record<'a>,
}

impl Body {
    pub(super) fn new(
        batch: &DueBatch,
        format: SinkFormat,
        event_source: &str,
    ) -> Result<Self, serde_json::Error> {
        let common = Common {
            batch,
            window_start: text_of(batch.window.starts()),
            window_end: text_of(batch.window.ends()),
        };
        let records = batch.records.iter();
        match format {
            SinkFormat::Json => {
                let records: Vec<_> = records.map(|record| common.record(record)).collect();
                Ok(Self { content_type: "application/json", bytes: serde_json::to_vec(&records)? })
            }
            SinkFormat::CloudEvents => {
                let event = |record| common.event(record, event_source);
                let events: Vec<_> = records.map(event).collect();
                let content_type = "application/cloudevents-batch+json";
                Ok(Self { content_type, bytes: serde_json::to_vec(&events)? })
            }
        }
    }
}

impl Common<'_> {
    fn record(&self, record: &UsageRecord) -> Record<'_> {
        Record {
            user_object_id: record.user,
            tenant_object_id: self.batch.tenant.as_str(),
            capacity_id: record.capacity,
            usage: Amount(record.usage),
            window_start_utc: &self.window_start,
            window_end_utc: &self.window_end,
            record_id: record.id,
        }
    }

    fn event<'a>(&'a self, record: &UsageRecord, source: &'a str) -> Event<'a> {
        Event {
            specversion: "1.0",
            id: record.id,
            source,
            kind: EVENT_TYPE,
            subject: record.session.as_uuid(),
            time: &self.window_end,
            datacontenttype: "application/json",
            data: self.record(record),
        }
    }
}
