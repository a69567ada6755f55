//! What was held, what was recorded, what was delivered: whether they agree.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{Metered, TenantId, Usage, Window};

use super::list::Recorded;
use crate::row::{Fields, stored_whole};
use crate::sqlite::Row;
use crate::{Error, Ledger, times};

/// How many windows are compared at once: a month of minutes.
pub const WINDOWS_RECONCILED_MAX: usize = 45_000;

/// One window in a tenant's books; or a gap between two windows, of which nothing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBooks {
    /// From when until when.
    pub window: Window,
    /// What the tenant's sessions used, computed anew from their history.
    pub held: Usage,
    /// What is on record.
    pub recorded: Recorded,
}

/// A tenant's usage over a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageBooks {
    /// From the first of the windows that lie within the span until the last; none if none does.
    pub span: Option<Window>,
    /// How many windows those are.
    pub windows: u64,
    /// What was held in them.
    pub held: Usage,
    /// What is on record.
    pub recorded: Recorded,
    /// The first window in which held, recorded and delivered are not the same.
    pub first_difference: Option<WindowBooks>,
}

impl WindowBooks {
    /// Whether what was held is on record, and all of it is delivered.
    pub fn agrees(&self) -> bool {
        self.held == self.recorded.usage() && self.held == self.recorded.delivered
    }
}

impl Ledger {
    /// Compares what a tenant's sessions held in the windows that lie within `span`, computed anew from
    /// their history, with what is on record. None if there are more than [`WINDOWS_RECONCILED_MAX`].
    ///
    /// Where retention has deleted history that windows were made from, less was held than is on record.
    pub async fn reconcile_usage(
        &self,
        tenant: &TenantId,
        span: Window,
    ) -> Result<Option<UsageBooks>, Error> {
        let rows = sqlx::query(include_str!("../../sql/window_books.sql"))
            .bind(tenant.as_str())
            .bind(times::stored(span.starts()))
            .bind(times::stored(span.ends()))
            .bind(stored_whole(WINDOWS_RECONCILED_MAX as u64 + 1))
            .fetch_all(self.readers())
            .await?;
        if rows.len() > WINDOWS_RECONCILED_MAX {
            return Ok(None);
        }
        let windows = rows.len() as u64;
        let mut books = with_gaps(rows.iter().map(WindowBooks::read))?;
        let Some(span) = span_of(&books) else { return Ok(Some(UsageBooks::default())) };
        let mut sessions = std::pin::pin!(self.metered_of_tenant_since(tenant, span.starts()));
        let mut held = Usage::ZERO;
        while let Some(session) = sessions.try_next().await? {
            held = held + session.life.used_in(span);
            hold(&mut books, session.life);
        }
        Ok(Some(UsageBooks {
            span: Some(span),
            windows,
            held,
            recorded: books.iter().map(|window| window.recorded).fold(Recorded::default(), Recorded::add),
            first_difference: books.into_iter().find(|window| !window.agrees()),
        }))
    }
}

/// The windows in their order, and what lies between them.
fn with_gaps(windows: impl Iterator<Item = Result<WindowBooks, Error>>) -> Result<Vec<WindowBooks>, Error> {
    let mut all: Vec<WindowBooks> = Vec::new();
    for window in windows {
        let window = window?;
        let gap = all.last().and_then(|last| Window::new(last.window.ends(), window.window.starts()));
        all.extend(gap.map(WindowBooks::unrecorded));
        all.push(window);
    }
    Ok(all)
}

fn span_of(windows: &[WindowBooks]) -> Option<Window> {
    Window::new(windows.first()?.window.starts(), windows.last()?.window.ends())
}

/// Adds what a session used to the windows in which it was live.
fn hold(windows: &mut [WindowBooks], life: Metered) {
    let first = windows.partition_point(|books| books.window.ends() <= life.started);
    let live = windows[first..].iter_mut().take_while(|books| books.window.starts() < life.over);
    for books in live {
        books.held = books.held + life.used_in(books.window);
    }
}

impl WindowBooks {
    fn unrecorded(window: Window) -> Self {
        Self { window, held: Usage::ZERO, recorded: Recorded::default() }
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { recorded: Recorded::read(&fields)?, ..Self::unrecorded(fields.window()?) })
    }
}
