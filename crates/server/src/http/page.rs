//! Cursor pages of lists.

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;

/// Number of items in a page by default.
const PAGE_ITEMS_DEFAULT: u32 = 50;
/// Highest number of items in a page.
const PAGE_ITEMS_MAX: u32 = 500;

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The items, in the list's order.
    pub(crate) items: Vec<T>,
    /// Value of `cursor` for the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Returns the requested page size, or the default. Returns an error outside of 1 to `PAGE_ITEMS_MAX`.
pub(crate) fn page_limit(limit: Option<u32>) -> Result<u32, Error> {
    let limit = limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    if (1..=PAGE_ITEMS_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::field("limit", format!("must be 1 to {PAGE_ITEMS_MAX}")))
    }
}

/// Parses the cursor from a previous page.
pub(crate) fn cursor_of<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, Error> {
    let parse = |text: &str| text.parse().map_err(|_| Error::field("cursor", "is not a cursor of this list"));
    text.map(parse).transpose()
}
