//! The content of a group whose plan demands the same content of all members.

use std::time::Duration;

use seatkeeper_core::{PoolId, RegistryTime, SessionId, Span};
use seatkeeper_ledger::group_contents::ContentReport;

use super::group_plan::GroupPlan;
use super::screen::owner_of;
use crate::app::App;
use crate::error::Error;

/// Time for which a member may watch other content than the host.
const DIFFERS_MAX: Span = Span::from_secs(60);

/// Longest wait for the ledger in a heartbeat.
const LEDGER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Keeps the content of a new member.
pub(super) async fn keep(app: &App, plan: &GroupPlan, report: ContentReport<'_>) -> Result<(), Error> {
    if plan.rules.same_content {
        app.ledger.report_group_content(report).await.map_err(Error::Ledger)?;
    }
    Ok(())
}

/// Returns `true` if a device with `content` may join the group of `host`.
pub(super) async fn fits(
    app: &App,
    plan: &GroupPlan,
    host: SessionId,
    content: Option<&str>,
) -> Result<bool, Error> {
    if !plan.rules.same_content {
        return Ok(true);
    }
    let hosts = app.ledger.group_content(host).await.map_err(Error::Ledger)?;
    Ok(content.is_some() && hosts.as_deref() == content)
}

/// Returns `true` if the content of a member has differed from the host's for too long, and the latest heartbeat of
/// the host, at `host_heard`, came after the first difference: a crashed host does not say what it watches, and is
/// succeeded when its TTL is over. While plan or ledger do not answer, no member leaves: a heartbeat does not depend
/// on the ledger.
pub(super) async fn must_leave(
    app: &App,
    screen: &PoolId,
    report: ContentReport<'_>,
    host_heard: RegistryTime,
) -> bool {
    if app.engine.is_ledger_away() {
        return false;
    }
    let differs = tokio::time::timeout(LEDGER_WAIT_MAX, differs_for(app, screen, report)).await;
    match differs.unwrap_or(Err(Error::TimedOut)) {
        Ok(differs) => differs.is_some_and(|span| span >= DIFFERS_MAX && host_heard >= report.at - span),
        Err(error) => {
            tracing::warn!(
                causes = error.with_causes(),
                "comparing the content of a group's member failed; the member stays until its next heartbeat"
            );
            false
        }
    }
}

/// Returns the time for which the member's content has differed from the host's, if the plan demands the same content.
async fn differs_for(app: &App, screen: &PoolId, report: ContentReport<'_>) -> Result<Option<Span>, Error> {
    let plan = GroupPlan::find(app, &screen.tenant, &owner_of(screen)).await?;
    if !plan.is_some_and(|plan| plan.rules.same_content) {
        return Ok(None);
    }
    app.ledger.report_group_content(report).await.map_err(Error::Ledger)
}
