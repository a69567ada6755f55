//! Reconciles a tenant's usage: held, recorded and delivered amounts must agree in every window.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{TenantId, Usage, Window};

use super::list::Recorded;
use super::tally::{Tally, Turns};
use crate::database::Row;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// The maximum number of windows compared in one call: a month of minutes.
pub const WINDOWS_RECONCILED_MAX: usize = 45_000;

/// A tenant's usage in one window, or in an unrecorded gap between two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBooks {
    /// The start and the end.
    pub window: Window,
    /// The usage of the tenant's sessions, recomputed from their history.
    pub held: Usage,
    /// The usage on record.
    pub recorded: Recorded,
}

/// A tenant's usage over a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageBooks {
    /// The span from the start of the first window in the requested span to the end of the last; `None`
    /// without windows.
    pub span: Option<Window>,
    /// The number of windows.
    pub windows: u64,
    /// The usage held in the windows.
    pub held: Usage,
    /// The usage on record.
    pub recorded: Recorded,
    /// The first window with different held, recorded or delivered usage.
    pub first_difference: Option<WindowBooks>,
}

impl WindowBooks {
    /// Checks that the held usage is on record and delivered in full.
    pub fn agrees(&self) -> bool {
        self.held == self.recorded.usage() && self.held == self.recorded.delivered
    }
}

impl Ledger {
    /// Compares the usage on record with the usage recomputed from the history of the tenant's sessions, in
    /// the windows that start within `span`. Adjacent spans compare each window once. `None` if the comparison is
    /// too large: more windows than [`WINDOWS_RECONCILED_MAX`], or more work than [`TALLY_MAX`](super::TALLY_MAX).
    ///
    /// Where retention has deleted a part of the history, the recomputed usage is less than the recorded
    /// usage.
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

    /// Returns the windows that start within `span` in order, including the gaps between them, and the number of windows
    /// without the gaps. Reading stops after [`WINDOWS_RECONCILED_MAX`] + 1 windows.
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
