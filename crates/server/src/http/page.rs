//! Lists in pages.

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;

/// How many items a page has when the caller does not say.
const PAGE_ITEMS_DEFAULT: u32 = 50;
/// How many items a caller may ask for.
const PAGE_ITEMS_MAX: u32 = 500;

/// One page of a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The items, in the list's order.
    pub(crate) items: Vec<T>,
    /// What to send as `cursor` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Checks a page's size.
pub(crate) fn page_limit(limit: Option<u32>) -> Result<u32, Error> {
    let limit = limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    if (1..=PAGE_ITEMS_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::field("limit", format!("must be 1 to {PAGE_ITEMS_MAX}")))
    }
}

/// Reads a cursor that a page before gave.
pub(crate) fn cursor_of<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, Error> {
    let parse = |text: &str| text.parse().map_err(|_| Error::field("cursor", "is not a cursor of this list"));
    text.map(parse).transpose()
}
