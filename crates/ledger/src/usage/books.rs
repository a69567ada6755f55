//! What was held, what was recorded, what was delivered: whether they agree.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{TenantId, Usage, Window};

use super::list::Recorded;
use super::tally::{Tally, Turns};
use crate::database::Row;
use crate::row::{Fields, stored_whole};
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
    /// their history, with what is on record. None if that is too much at once: more windows than
    /// [`WINDOWS_RECONCILED_MAX`], or more work than [`TALLY_MAX`](super::TALLY_MAX).
    ///
    /// Where retention has deleted history that windows were made from, less was held than is on record.
    pub async fn reconcile_usage(
        &self,
        tenant: &TenantId,
        span: Window,
    ) -> Result<Option<UsageBooks>, Error> {
        let (mut books, windows) = self.recorded_within(tenant, span).await?;
        if windows > WINDOWS_RECONCILED_MAX {
            return Ok(None);
        }
        let Some(span) = span_of(&books) else { return Ok(Some(UsageBooks::default())) };
        let mut sessions = std::pin::pin!(self.metered_of_tenant(tenant, span));
        let (mut held, mut tally, mut turns) = (Usage::ZERO, Tally::default(), Turns::default());
        while let Some(session) = sessions.try_next().await? {
            held = held + session.life.used_in(span);
            if !tally.take(&books, session.life) {
                return Ok(None);
            }
            turns.read().await;
        }
        tally.add_to(&mut books).await;
        Ok(Some(UsageBooks {
            span: Some(span),
            windows: windows as u64,
            held,
            recorded: books.iter().map(|window| window.recorded).fold(Recorded::default(), Recorded::add),
            first_difference: books.into_iter().find(|window| !window.agrees()),
        }))
    }

    /// The windows within the span in their order, with what lies between them, and how many windows those
    /// are: not all of them if they are more than [`WINDOWS_RECONCILED_MAX`].
    async fn recorded_within(
        &self,
        tenant: &TenantId,
        span: Window,
    ) -> Result<(Vec<WindowBooks>, usize), Error> {
        let mut rows = self
            .readers()
            .query(include_str!("../../sql/window_books.sql"))
            .bind(tenant.as_str())
            .bind(times::stored(span.starts()))
            .bind(times::stored(span.ends()))
            .bind(stored_whole(WINDOWS_RECONCILED_MAX as u64 + 1))
            .fetch();
        let (mut all, mut windows, mut turns) = (Vec::<WindowBooks>::new(), 0, Turns::default());
        while let Some(row) = rows.try_next().await? {
            let window = WindowBooks::read(&row)?;
            let gap = all.last().and_then(|last| Window::new(last.window.ends(), window.window.starts()));
            all.extend(gap.map(WindowBooks::unrecorded));
            all.push(window);
            windows += 1;
            turns.read().await;
        }
        Ok((all, windows))
    }
}

fn span_of(windows: &[WindowBooks]) -> Option<Window> {
    Window::new(windows.first()?.window.starts(), windows.last()?.window.ends())
}

impl WindowBooks {
    pub(super) fn unrecorded(window: Window) -> Self {
        Self { window, held: Usage::ZERO, recorded: Recorded::default() }
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { recorded: Recorded::read(&fields)?, ..Self::unrecorded(fields.window()?) })
    }
}
