//! The news of a group: announcements to the streams on all nodes, and the content of the events.

use axum::response::sse::Event;
use seatkeeper_core::{EndReason, SessionId, TenantId};
use serde::Serialize;
use uuid::Uuid;

use crate::app::App;
use crate::entitlements::Changed;
use crate::error::Error;

/// Wakes the streams of a group on every node, because the members of the group have changed. The answer to the caller does
/// not wait.
pub(super) fn announce(app: &App, tenant: &TenantId, group: SessionId) {
    let (changed, news) = (Changed::Group(tenant.clone(), group), app.clone());
    app.writes.spawn(async move { news.entitlements.changed(changed).await });
}

/// A change of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupNews {
    /// The state at the begin of a stream.
    Begun {
        host: SessionId,
        members: Vec<SessionId>,
    },
    MemberJoined {
        member: SessionId,
        members: usize,
    },
    MemberLeft {
        member: SessionId,
        members: usize,
        reason: Option<EndReason>,
    },
    HostChanged {
        host: SessionId,
    },
    /// The screen has ended. `reason` is unknown while the ledger does not answer.
    Ended {
        reason: Option<EndReason>,
    },
}

/// The data of the events.
#[derive(Serialize)]
#[serde(untagged)]
enum Data {
    Begun { group_id: Uuid, host_session_id: Uuid, member_session_ids: Vec<Uuid> },
    Joined { group_id: Uuid, session_id: Uuid, members: usize },
    Left { group_id: Uuid, session_id: Uuid, members: usize, reason: Option<&'static str> },
    Host { group_id: Uuid, host_session_id: Uuid },
    Ended { group_id: Uuid, reason: Option<&'static str> },
}

impl GroupNews {
    /// Builds the event for the stream of a group.
    pub(super) fn event(&self, group: SessionId) -> Result<Event, Error> {
        let group_id = group.as_uuid();
        let text = |reason: &Option<EndReason>| reason.map(EndReason::as_str);
        let (name, data) = match self {
            Self::Begun { host, members } => {
                let member_session_ids = members.iter().map(|member| member.as_uuid()).collect();
                ("group", Data::Begun { group_id, host_session_id: host.as_uuid(), member_session_ids })
            }
            Self::MemberJoined { member, members } => {
                let (session_id, members) = (member.as_uuid(), *members);
                ("member_joined", Data::Joined { group_id, session_id, members })
            }
            Self::MemberLeft { member, members, reason } => {
                let (session_id, members, reason) = (member.as_uuid(), *members, text(reason));
                ("member_left", Data::Left { group_id, session_id, members, reason })
            }
            Self::HostChanged { host } => {
                ("host_changed", Data::Host { group_id, host_session_id: host.as_uuid() })
            }
            Self::Ended { reason } => ("group_ended", Data::Ended { group_id, reason: text(reason) }),
        };
        let event = Event::default().event(name).json_data(data);
        event.map_err(|error| Error::Unwritable(error.into()))
    }
}
