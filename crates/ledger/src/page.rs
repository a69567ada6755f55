//! Lists, a page at a time.

/// How many items a page holds at most, whatever is asked for: it bounds the memory of one request.
pub const PAGE_ITEMS_MAX: u32 = 1_000;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The cursor that asks for the next page; none: this is the last.
    pub next: Option<C>,
}

/// How many rows to read for a page of `limit` items: one more, which tells whether another follows.
pub(crate) fn rows_for(limit: u32) -> u64 {
    u64::from(limit.clamp(1, PAGE_ITEMS_MAX)) + 1
}

impl<T, C> Page<T, C> {
    /// Makes a page from what was read with [`rows_for`].
    pub(crate) fn of(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> Self {
        let size = limit.clamp(1, PAGE_ITEMS_MAX) as usize;
        let more = items.len() > size;
        items.truncate(size);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}
