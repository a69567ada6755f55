//! The surroundings of one step: the plan, the time, the jitter, and the actions that the step leads to.

use std::sync::Arc;
use std::time::Duration;

use crate::action::Action;
use crate::door::Away;
use crate::plan::Plan;
use crate::request::{Call, Request, RequestId};
use crate::retry::Jitter;
use crate::time::{Deadline, Now};

/// The knowledge of a machine that outlives its sessions.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The latest session.
    pub session: Option<Arc<str>>,
    /// The last activity of the user.
    pub active_at: Option<Deadline>,
}

/// The input of a step besides the event, and the step's actions so far.
pub(super) struct Context<'a> {
    pub plan: &'a Plan,
    pub now: Now,
    pub jitter: Jitter,
    memory: &'a Memory,
    next_request: RequestId,
    actions: Vec<Action>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        memory: &'a Memory,
        now: Now,
        jitter: Jitter,
        next_request: RequestId,
    ) -> Self {
        Self { plan, now, jitter, memory, next_request, actions: Vec::new() }
    }

    /// Returns the acquire of this machine.
    pub(super) fn acquire(&self) -> Call {
        self.plan.door.acquire(self.memory.session.as_deref())
    }

    /// Returns a heartbeat. `offline` is the start of an outage that goes on.
    pub(super) fn heartbeat(&self, session: &str, offline: Option<Deadline>) -> Call {
        let offline = offline.map(|since| since.elapsed(self.now)).unwrap_or_default();
        let idle = self.memory.active_at.map(|at| at.elapsed(self.now));
        self.plan.door.heartbeat(session, Away { idle, offline })
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, call: Call, timeout: Duration) -> RequestId {
        let id = self.next_request;
        self.next_request = id.next();
        let Call { method, path, body, bearer } = call;
        self.actions.push(Action::Send(Request { id, method, path, body, bearer, timeout }));
        id
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Returns the number of the next request, and the actions in their order.
    pub(super) fn finish(self) -> (RequestId, Vec<Action>) {
        (self.next_request, self.actions)
    }
}
