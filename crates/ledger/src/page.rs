//! Cursor pages of lists.

/// The maximum number of items in a page. A larger requested limit is reduced, to bound the memory of one
/// request.
pub const PAGE_ITEMS_MAX: u32 = 1_000;

/// A cursor page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<C>,
}

/// Returns the number of rows to read for a page of `limit` items. One extra row shows that a next page
/// exists.
pub(crate) fn rows_for(limit: u32) -> u64 {
    u64::from(limit.clamp(1, PAGE_ITEMS_MAX)) + 1
}

impl<T, C> Page<T, C> {
    /// Builds a page from rows read with [`rows_for`].
    pub(crate) fn new(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> Self {
        let size = limit.clamp(1, PAGE_ITEMS_MAX) as usize;
        let more = items.len() > size;
        items.truncate(size);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}
