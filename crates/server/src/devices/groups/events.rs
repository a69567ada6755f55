//! Server-sent events about a group, for its members and for the subscriber of its screen.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use futures_util::{Stream, stream};
use seatkeeper_core::{EndReason, PoolKind, SessionId};
use seatkeeper_engine::Listener;
use tokio::time::Instant;

use super::member_diff::{MemberDiff, MemberSet};
use super::members::{host, live_members, seen_by};
use super::members_of;
use super::news::GroupNews;
use super::screen::any;
use crate::app::App;
use crate::entitlements::Listening;
use crate::error::Error;
use crate::events::{response_of, token_refused};
use crate::http::{ParameterProblems, Problems, SessionPath, Who};
use crate::limits::StreamPermit;
use crate::problem::Problem;

/// Pause before the retry of a failed look.
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause between two looks. A lost announcement delays an event by no more.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Throttle on looks caused by ends of other sessions in the buckets of the screen and of the members.
const RUMOUR_PACE: Duration = Duration::from_millis(250);

/// Longest wait for the reason of an end, which is in the ledger.
const REASON_WAIT_MAX: Duration = Duration::from_millis(500);

/// Longest duration of a stream, even if the token is valid for longer.
const LASTS_MAX: Duration = Duration::from_secs(24 * 3_600);

/// `GET /groups/{session_id}/events`: streams the events of a group to a member or to the subscriber of the screen: `group`
/// with the present members, then `member_joined`, `member_left`, `host_changed` and `group_ended`. The stream closes after
/// the end of the group or of the caller's last membership, and when the token expires. The id of a group is the session of
/// its screen.
#[utoipa::path(
    get, path = "/api/v1/devices/groups/{session_id}/events", tag = "devices", operation_id = "group_events",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 200, content_type = "text/event-stream", body = String, description = "Events, until the group ends"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-event-streams")
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    who: Who,
    headers: HeaderMap,
    SessionPath(group): SessionPath,
) -> Result<Response, Error> {
    let token_refused = token_refused(app.clone(), &headers)?;
    Ok(response_of(GroupWatch::begin(app, who, group).await?.into_events(), token_refused))
}

/// Returns the most streams of the caller: two for each of its members in the group, because a client may open a stream
/// before the server has noticed the loss of the earlier stream. One guest leaves streams for all others.
async fn share_of(app: &App, who: &Who, group: SessionId) -> Result<usize, Error> {
    let members = seen_by(app, who, group).await?.members;
    let own = members.iter().filter(|live| live.session.users.contains(&who.user)).count();
    Ok(2 * own.max(1))
}

/// A watched group. The watch looks at the present members after every wake-up, so wake-ups may be late or spurious.
struct GroupWatch {
    app: App,
    who: Who,
    group: SessionId,
    /// Ends of the screen and of members.
    ends: Listener,
    announced: Listening,
    known: MemberSet,
    unsent: VecDeque<Event>,
    look_again_in: Duration,
    until: Instant,
    is_over: bool,
    /// Counts the stream among the streams of the caller.
    _permit: StreamPermit,
}

impl GroupWatch {
    /// Begins to watch. From here on no change is missed.
    async fn begin(app: App, who: Who, group: SessionId) -> Result<Self, Error> {
        let (share, max) = (share_of(&app, &who, group).await?, app.settings.server.event_streams_max);
        let permit = app.limits.event_stream(&who, 1, &app.settings.server)?;
        let members = members_of(&who.tenant, group);
        let ends = app.engine.listen_to_group((group, &members), (&who.user, share), max);
        let ends = ends.ok_or(Error::TooManyStreams)?;
        let announced = app.entitlements.subscribers.listen_to_group(who.tenant.clone(), group);
        let until = Instant::now() + who.lasts().min(LASTS_MAX);
        let begun = Event::default().id(group.as_uuid().to_string());
        let mut watch = Self {
            app,
            who,
            group,
            ends,
            announced,
            known: MemberSet::default(),
            unsent: VecDeque::from([begun]),
            look_again_in: RETRY,
            until,
            is_over: false,
            _permit: permit,
        };
        let (now, is_seen) = watch.members().await?;
        let host = now.host.filter(|_| is_seen).ok_or(Error::SessionNotFound)?;
        watch.tell(&GroupNews::Begun { host, members: now.members.iter().copied().collect() })?;
        watch.known = now;
        Ok(watch)
    }

    fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let event = watch.next().await?;
            Some((Ok(event), watch))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.unsent.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.look().await {
                let causes = error.with_causes();
                tracing::debug!(causes, "looking up a watched group failed; retrying");
                self.look_again_in = RETRY;
            }
            if !self.unsent.is_empty() || self.is_over {
                continue;
            }
            let paced = Instant::now() + RUMOUR_PACE;
            tokio::select! {
                () = self.ends.heard(paced) => {}
                () = self.announced.changed() => {}
                () = tokio::time::sleep(self.look_again_in) => {}
                () = tokio::time::sleep_until(self.until) => return None,
                () = self.app.stopping.cancelled() => return None,
            }
        }
    }

    /// Tells the changes since the last look.
    async fn look(&mut self) -> Result<(), Error> {
        let (now, is_seen) = self.members().await?;
        // The screen is read last: a caller without a screen or a member may have lost both to the end of the group.
        let screen = any(&self.who.tenant, PoolKind::Subscriber);
        if self.app.engine.live_anywhere(self.group, &screen).await?.is_none() {
            let reason = self.reason(PoolKind::Subscriber, self.group).await;
            self.is_over = true;
            return self.tell(&GroupNews::Ended { reason });
        }
        let (diff, members) = (MemberDiff::between(&self.known, &now), now.members.len());
        self.known = now;
        self.is_over = !is_seen;
        for member in diff.left {
            let reason = self.reason(PoolKind::Group, member).await;
            self.tell(&GroupNews::MemberLeft { member, members, reason })?;
        }
        for member in diff.joined {
            self.tell(&GroupNews::MemberJoined { member, members })?;
        }
        match diff.host {
            Some(host) => self.tell(&GroupNews::HostChanged { host }),
            None => Ok(()),
        }
    }

    /// Returns the present members, and whether the caller may still watch the group.
    async fn members(&mut self) -> Result<(MemberSet, bool), Error> {
        let (members, is_seen) = match seen_by(&self.app, &self.who, self.group).await {
            Ok(seen) => (seen.members, true),
            Err(Error::SessionNotFound) => {
                (live_members(&self.app, &self.who.tenant, self.group).await?, false)
            }
            Err(error) => return Err(error),
        };
        // Without a heartbeat, a member is over just before the next look.
        let expires_in = members.iter().map(|live| live.expires_in.as_millis().saturating_add(1)).min();
        self.look_again_in = expires_in.map_or(RETRY, Duration::from_millis).min(LOOK_AGAIN_MAX);
        let host = host(&members);
        let members = members.iter().map(|live| live.session.id).collect();
        Ok((MemberSet { host, members }, is_seen))
    }

    /// Returns the reason of an end; `None` if the ledger does not answer in time.
    async fn reason(&self, kind: PoolKind, ended: SessionId) -> Option<EndReason> {
        let authority = any(&self.who.tenant, kind);
        let record = self.app.engine.record(ended, &authority);
        let record = tokio::time::timeout(REASON_WAIT_MAX, record).await.ok()?.ok()??;
        record.ended.map(|end| end.reason)
    }

    fn tell(&mut self, news: &GroupNews) -> Result<(), Error> {
        self.unsent.push_back(news.event(self.group)?);
        Ok(())
    }
}
