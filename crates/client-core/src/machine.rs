//! The state machine of one seat.

mod acquiring;
mod context;
mod exchange;
mod holding;
mod orphan;
mod regaining;
mod releasing;

use std::sync::Arc;

use crate::action::Action;
use crate::event::Event;
use crate::lease::Lease;
use crate::plan::Plan;
use crate::request::RequestId;
use crate::retry::Jitter;
use crate::state::{Loss, Refusal, State};
use crate::time::{ClockLead, Deadline, Now};

use acquiring::Acquiring;
use context::{Context, Memory};
use holding::Holding;
use orphan::Orphan;
use regaining::Regaining;
use releasing::Releasing;

/// A timer this late means a suspended host.
const TIMER_LATE: std::time::Duration = std::time::Duration::from_secs(10);

/// The holder's state machine for one seat.
///
/// The driver calls [`step`](Self::step) for each event and at [`wake_at`](Self::wake_at), and carries out the actions.
/// At most a single request is in flight.
#[derive(Debug)]
pub struct Machine {
    plan: Plan,
    phase: Phase,
    /// The clocks at the last step.
    last: ClockLead,
    memory: Memory,
    next_request: RequestId,
}

/// The phases of a machine, each with the data that is valid in the phase.
#[derive(Debug)]
enum Phase {
    Acquiring(Acquiring),
    Holding(Holding),
    /// Boxed, because few seats are in this phase, which is the largest.
    Regaining(Box<Regaining>),
    Releasing(Releasing),
    Lost(Loss, Orphan),
    Refused(Refusal, Orphan),
    Released(Orphan),
}

impl Machine {
    /// Creates a machine and starts its acquire.
    #[must_use]
    pub fn new(plan: Plan, now: Now) -> (Self, Vec<Action>) {
        let memory = Memory::default();
        let mut context = Context::new(&plan, &memory, now, Jitter::new(0.0), RequestId::FIRST);
        let phase = Phase::Acquiring(Acquiring::start(Orphan::None, &mut context));
        let (next_request, actions) = context.finish();
        (Self { plan, phase, last: now.lead(), memory, next_request }, actions)
    }

    /// Creates a machine that goes on with a session of the same holder, acquired by another process, and starts a heartbeat.
    ///
    /// The machine sends no acquire before a heartbeat has renewed the session: an ended session is lost, and no second
    /// session takes its place. Before that heartbeat the machine is `reacquiring`, and asks for a week.
    #[must_use]
    pub fn resume(plan: Plan, session: &str, now: Now) -> (Self, Vec<Action>) {
        let memory = Memory { session: Some(session.into()), ..Memory::default() };
        let mut context = Context::new(&plan, &memory, now, Jitter::new(0.0), RequestId::FIRST);
        let lease = Lease::resumed(session.into(), now.instant());
        let regaining = Regaining::resumed(lease, &mut context);
        let (next_request, actions) = context.finish();
        (Self { plan, phase: Phase::Regaining(regaining), last: now.lead(), memory, next_request }, actions)
    }

    /// Takes an event at `now`, and returns the resulting actions. `jitter` is drawn anew for every step.
    pub fn step(&mut self, event: Event, now: Now, jitter: Jitter) -> Vec<Action> {
        let late = self.wake_at().is_some_and(|at| at.after(TIMER_LATE).has_passed(now));
        let woke = event == Event::Wake || now.lead().has_slept_since(self.last) || late;
        self.last = now.lead();
        self.advance(now, jitter, |phase, context| {
            let phase = if woke { phase.wake(context) } else { phase };
            if event == Event::Wake { phase } else { phase.step(event, context) }
        })
    }

    /// Notes an activity of the user at `at`, for the next heartbeats to tell. Sends nothing.
    pub fn note_activity(&mut self, at: Deadline) {
        self.memory.active_at = self.memory.active_at.max(Some(at));
    }

    /// Returns the plan of the machine.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the time at which the machine wants [`Event::Tick`]; `None` for a machine without a timer.
    #[must_use]
    pub fn wake_at(&self) -> Option<Deadline> {
        match &self.phase {
            Phase::Acquiring(phase) => Some(phase.wake_at()),
            Phase::Holding(phase) => Some(phase.wake_at()),
            Phase::Regaining(phase) => phase.wake_at(),
            Phase::Releasing(phase) => Some(phase.wake_at()),
            Phase::Lost(..) | Phase::Refused(..) | Phase::Released(_) => None,
        }
    }

    /// Returns the state at `now`. No answer is [`State::Active`] after its deadline, also between two steps.
    #[must_use]
    pub fn state(&self, now: Now) -> State {
        let state = self.phase.state();
        if let State::Active { until } = state
            && until.has_passed(now)
        {
            return State::Offline { since: until, until };
        }
        state
    }

    /// Returns the id of the session, while the machine has one.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<str>> {
        self.lease().map(|lease| &lease.session.id)
    }

    /// Returns the id of the license, if a server told one.
    #[must_use]
    pub fn license_id(&self) -> Option<&Arc<str>> {
        self.lease().and_then(|lease| lease.license_id.as_ref())
    }

    /// Shares the text `known` as the id of the license if the id is the same text, and changes nothing otherwise.
    pub fn share_license_id(&mut self, known: &Arc<str>) {
        let lease = match &mut self.phase {
            Phase::Holding(phase) => phase.lease_mut(),
            Phase::Regaining(phase) => phase.lease_mut(),
            Phase::Acquiring(_)
            | Phase::Releasing(_)
            | Phase::Lost(..)
            | Phase::Refused(..)
            | Phase::Released(_) => return,
        };
        if let Some(id) = lease.license_id.as_mut().filter(|id| *id == known) {
            id.clone_from(known);
        }
    }

    /// Returns the seats in use and in total, as the grant told.
    #[must_use]
    pub fn seats(&self) -> Option<(u32, u32)> {
        self.lease().and_then(|lease| lease.seats)
    }

    fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Holding(phase) => Some(phase.lease()),
            Phase::Regaining(phase) => Some(phase.lease()),
            Phase::Acquiring(_)
            | Phase::Releasing(_)
            | Phase::Lost(..)
            | Phase::Refused(..)
            | Phase::Released(_) => None,
        }
    }

    fn advance(
        &mut self,
        now: Now,
        jitter: Jitter,
        transition: impl FnOnce(Phase, &mut Context<'_>) -> Phase,
    ) -> Vec<Action> {
        let mut context = Context::new(&self.plan, &self.memory, now, jitter, self.next_request);
        let before = self.phase.state();
        let phase = std::mem::replace(&mut self.phase, Phase::Released(Orphan::None));
        self.phase = transition(phase, &mut context);
        let mut actions;
        (self.next_request, actions) = context.finish();
        if let Some(session) = self.session() {
            self.memory.session = Some(session.clone());
        }
        let state = self.phase.state();
        if !state.is_like(&before) {
            actions.push(Action::Tell(state));
        }
        actions
    }
}

impl Phase {
    fn step(self, event: Event, context: &mut Context<'_>) -> Self {
        match self {
            Self::Acquiring(phase) => phase.step(event, context),
            Self::Holding(phase) => phase.step(event, context),
            Self::Regaining(phase) => phase.step(event, context),
            Self::Releasing(phase) => phase.step(event, context),
            Self::Lost(_, orphan) | Self::Refused(_, orphan) | Self::Released(orphan)
                if event == Event::Acquire =>
            {
                Self::Acquiring(Acquiring::start(orphan, context))
            }
            Self::Lost(_, orphan) | Self::Refused(_, orphan) | Self::Released(orphan)
                if matches!(event, Event::Release | Event::Abandon) =>
            {
                Releasing::orphan(orphan, context)
            }
            ended @ (Self::Lost(..) | Self::Refused(..) | Self::Released(_)) => ended,
        }
    }

    /// Voids the request in flight after a sleep of the host, and asks the server before any other work.
    fn wake(self, context: &mut Context<'_>) -> Self {
        match self {
            Self::Acquiring(phase) => Self::Acquiring(phase.wake(context)),
            Self::Holding(phase) => phase.wake(context),
            Self::Regaining(phase) => Self::Regaining(phase.wake(context)),
            ended @ (Self::Releasing(_) | Self::Lost(..) | Self::Refused(..) | Self::Released(_)) => ended,
        }
    }

    fn state(&self) -> State {
        match self {
            Self::Acquiring(_) => State::Acquiring,
            Self::Holding(phase) => phase.state(),
            Self::Regaining(phase) => phase.state(),
            Self::Lost(loss, _) => State::Lost(loss.clone()),
            Self::Refused(refusal, _) => State::Refused(refusal.clone()),
            Self::Releasing(_) | Self::Released(_) => State::Released,
        }
    }
}
