//! The surroundings of one step: the plan, the time, the jitter, and the actions that the step leads to.

use std::time::Duration;

use crate::action::Action;
use crate::plan::Plan;
use crate::request::{Call, Request, RequestId};
use crate::retry::Jitter;
use crate::time::Now;

/// The input of a step besides the event, and the step's actions so far.
pub(super) struct Context<'a> {
    pub plan: &'a Plan,
    pub now: Now,
    pub jitter: Jitter,
    next_request: RequestId,
    actions: Vec<Action>,
}

impl<'a> Context<'a> {
    pub(super) fn new(plan: &'a Plan, now: Now, jitter: Jitter, next_request: RequestId) -> Self {
        Self { plan, now, jitter, next_request, actions: Vec::new() }
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, call: Call, timeout: Duration) -> RequestId {
        let id = self.next_request;
        self.next_request = id.next();
        let Call { method, path, body } = call;
        self.actions.push(Action::Send(Request { id, method, path, body, timeout }));
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
