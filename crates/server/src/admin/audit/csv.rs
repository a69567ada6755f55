//! A page of records as CSV (RFC 4180), for spreadsheets and archives.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use super::record::RecordAnswer;
use crate::error::Error;
use crate::http::Page;

const X_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// The names of the columns, in the order of [`row`].
const HEADER: &str = "id,at,pool_kind,pool,stream,seq,epoch,action,session_id,holder,instance_id,actor,actor_tenant,\
    request_id,reason,limit,version,live,count,user,tier,device_type,device_name,ip,last_heartbeat_at,expires_at";

/// Builds the response with a page of records. The cursor of the next page is in the header `x-next-cursor`.
pub(super) fn answer(page: &Page<RecordAnswer>) -> Result<Response, Error> {
    let text = text(&page.items).map_err(|error| Error::Unwritable(error.into()))?;
    let mut response = ([(CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response();
    if let Some(Ok(cursor)) = page.next_cursor.as_deref().map(HeaderValue::from_str) {
        response.headers_mut().insert(X_NEXT_CURSOR, cursor);
    }
    Ok(response)
}

fn text(records: &[RecordAnswer]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER.split(','))?;
    for record in records {
        writer.write_record(row(record))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

fn row(record: &RecordAnswer) -> [String; 26] {
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        record.id.to_string(),
        record.at.clone(),
        record.pool_kind.into(),
        cell(Some(&record.pool)),
        record.stream.into(),
        record.seq.to_string(),
        record.epoch.to_string(),
        record.action.into(),
        record.session_id.map(|id| id.to_string()).unwrap_or_default(),
        cell(record.holder.as_deref()),
        cell(record.instance_id.as_deref()),
        cell(Some(&record.actor)),
        cell(record.actor_tenant.as_deref()),
        cell(record.request_id.as_deref()),
        cell(record.reason.as_deref()),
        record.limit.to_string(),
        record.version.to_string(),
        number(record.live),
        record.count.to_string(),
        cell(record.user.as_deref()),
        number(record.tier.map(u32::from)),
        cell(record.device_type.as_deref()),
        cell(record.device_name.as_deref()),
        record.ip.clone().unwrap_or_default(),
        record.last_heartbeat_at.clone().unwrap_or_default(),
        record.expires_at.clone().unwrap_or_default(),
    ]
}

/// Returns a client's text as a cell. A text that a spreadsheet would take for a formula is prefixed with a
/// quote.
fn cell(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula { format!("'{text}") } else { text.into() }
}
