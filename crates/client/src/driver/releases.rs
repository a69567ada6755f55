//! Releases of seats, closes of slots, and the calls waiting for their end.

use std::collections::BTreeMap;
use std::fmt;

use seatkeeper_client_core::{Door, Event, Finish, LicenseDoor, MaskedKey, State};
use tokio::sync::oneshot;

use super::{Done, Driver, Entry};
use crate::clock;
use crate::shared::SeatKey;
use crate::slot::Slot;
use crate::tokens::TokenOwner;

/// Names the holder of a seat. An acquire waits for the releases of the same holder.
///
/// A license seat is named without its instance: for a license counting machines the server ignores the instance, and the
/// client does not know how the license counts. The machine does count, although a license may count users. A program with
/// seats of many machines would otherwise wait for every machine, and the wait cuts an abandoned acquire short.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum HolderId {
    License { key: Box<str>, machine: Box<str> },
    Device(Box<str>),
}

impl From<&Door> for HolderId {
    fn from(door: &Door) -> Self {
        match door {
            Door::License(license) => license.into(),
            Door::Device(device) => Self::Device(device.device_id.clone()),
        }
    }
}

impl From<&LicenseDoor> for HolderId {
    fn from(license: &LicenseDoor) -> Self {
        Self::License { key: license.license_key.clone(), machine: license.machine_id.clone() }
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::License { key, machine } => {
                f.debug_struct("License").field("key", &MaskedKey(key)).field("machine", machine).finish()
            }
            Self::Device(device) => f.debug_tuple("Device").field(device).finish(),
        }
    }
}

/// The releases under way. A release is over when its slot is closed as well.
#[derive(Default)]
pub(super) struct Releases {
    /// The seats that the driver still steps.
    seats: BTreeMap<SeatKey, HolderId>,
    /// The seats whose slot is being closed.
    slots: BTreeMap<SeatKey, HolderId>,
    /// The calls waiting for the end of the release of one seat.
    finishing: BTreeMap<SeatKey, Vec<oneshot::Sender<Finish>>>,
    /// The acquires waiting for the end of these releases.
    awaiting: Vec<(Vec<SeatKey>, oneshot::Sender<()>)>,
}

impl Releases {
    /// Notes the release of a seat. A seat noted already stays.
    pub(super) fn begin(&mut self, key: SeatKey, door: &Door) {
        self.seats.entry(key).or_insert_with(|| door.into());
    }

    /// Notes a call that waits for the end of the release of a seat.
    pub(super) fn await_finish(&mut self, key: SeatKey, done: oneshot::Sender<Finish>) {
        self.finishing.entry(key).or_default().push(done);
    }

    /// Notes the end of the close of a slot.
    pub(super) fn slot_closed(&mut self, key: SeatKey) {
        self.slots.remove(&key);
    }

    /// Returns true if a slot is being closed.
    pub(super) fn is_closing_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Returns the releases of `holder`.
    fn by_holder(&self, holder: &HolderId) -> Vec<SeatKey> {
        let releases = self.seats.iter().chain(&self.slots);
        releases.filter(|(_, other)| *other == holder).map(|(key, _)| *key).collect()
    }

    /// Answers each [`Command::AwaitReleases`](super::Command::AwaitReleases) whose releases are over.
    pub(super) fn tell_over(&mut self) {
        let Self { seats, slots, awaiting, finishing: _ } = self;
        let is_under_way = |key: &SeatKey| seats.contains_key(key) || slots.contains_key(key);
        for (_, done) in awaiting.extract_if(.., |(releases, _)| !releases.iter().any(is_under_way)) {
            // The program may have stopped to wait.
            let _ = done.send(());
        }
    }
}

/// A client after [`Command::Close`](super::Command::Close): no seat is started any more.
#[derive(Default)]
pub(super) struct Closing {
    waiting: Vec<oneshot::Sender<Finish>>,
    /// Some release since was not confirmed.
    unconfirmed: bool,
}

impl Driver {
    /// Returns true without a seat, and without a slot being closed.
    pub(super) fn is_idle(&self) -> bool {
        self.seats.is_empty() && !self.releases.is_closing_slots()
    }

    /// Answers `done` after the releases that `holder` has under way. An abandoned acquire may be in flight for longer:
    /// `Event::Release` ends its release within two seconds.
    pub(super) fn await_releases(&mut self, holder: &HolderId, done: oneshot::Sender<()>) {
        let releases = self.releases.by_holder(holder);
        for key in &releases {
            self.step(*key, Event::Release);
        }
        self.releases.awaiting.push((releases, done));
    }

    /// Gives every seat back, and answers `done` at the end.
    pub(super) fn close(&mut self, done: oneshot::Sender<Finish>) {
        self.closing.get_or_insert_default().waiting.push(done);
        self.step_all(&Event::Release);
    }

    /// Answers [`Command::Close`](super::Command::Close) once every release is over.
    pub(super) fn tell_closed(&mut self) {
        if !self.is_idle() {
            return;
        }
        let Some(closing) = &mut self.closing else { return };
        let finish = if closing.unconfirmed { Finish::Unconfirmed } else { Finish::GivenBack };
        for done in closing.waiting.drain(..) {
            // The program may have stopped to wait.
            let _ = done.send(finish);
        }
    }

    /// Ends the release of a seat: closes the slot, and answers the waiting calls.
    pub(super) fn finish(&mut self, key: SeatKey, finish: Finish) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        entry.finished = true;
        let waiting = self.releases.finishing.remove(&key).unwrap_or_default();
        let slot = entry.slot.take().map(|slot| (HolderId::from(&entry.machine.plan().door), slot));
        if let Some(closing) = &mut self.closing {
            closing.unconfirmed |= finish == Finish::Unconfirmed;
        }
        let tell = move || {
            for done in waiting {
                // The program may have stopped to wait.
                let _ = done.send(finish);
            }
        };
        match slot {
            // The program may acquire again as soon as it hears of the release.
            Some((holder, slot)) => self.close_slot(key, holder, *slot, tell),
            None => tell(),
        }
    }

    /// Closes the slot of a seat outside of the task, and then calls `tell`.
    pub(super) fn close_slot(
        &mut self,
        key: SeatKey,
        holder: HolderId,
        slot: Slot,
        tell: impl FnOnce() + Send + 'static,
    ) {
        self.releases.slots.insert(key, holder);
        let closed = slot.close();
        self.work.spawn(async move {
            closed.await;
            tell();
            Done::SlotClosed { key }
        });
    }

    /// Stops the machine of a seat without a release. A release under way goes on.
    pub(super) fn leave(&mut self, key: SeatKey) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        if entry.machine.state(clock::now()) == State::Released {
            return;
        }
        if let Some((_, handle)) = entry.flight.take() {
            handle.abort();
        }
        if let Some(at) = entry.wake_at {
            self.timers.remove(&(at, key));
        }
        entry.shared.publish(State::Released, true);
        self.forget(key);
    }

    /// Removes a seat with its slot, and the keeper of its token with the token's last seat.
    pub(super) fn forget(&mut self, key: SeatKey) {
        let Some(entry) = self.seats.remove(&key) else { return };
        let Entry { token_owner, slot, machine, .. } = *entry;
        self.releases.seats.remove(&key);
        self.releases.finishing.remove(&key);
        if let Some(slot) = slot {
            self.close_slot(key, HolderId::from(&machine.plan().door), *slot, || ());
        }
        let is_shared = token_owner == TokenOwner::default();
        if !is_shared && !self.seats.values().any(|entry| entry.token_owner == token_owner) {
            self.keepers.remove(&token_owner);
        }
        self.follow_session(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn license(machine: &str, instance: &str) -> Door {
        let instance_id = Some(instance.into());
        Door::License(LicenseDoor { instance_id, ..LicenseDoor::new("CANARY-LICENSE-KEY9", machine) })
    }

    #[test]
    fn a_holder_of_a_license_is_a_machine_and_shows_the_end_of_the_key_alone() {
        let holder = HolderId::from(&license("m", "a"));
        assert_eq!(holder, HolderId::from(&license("m", "b")));
        assert_ne!(holder, HolderId::from(&license("n", "a")));
        assert_eq!(format!("{holder:?}"), r#"License { key: ****KEY9, machine: "m" }"#);
    }

    #[test]
    fn a_release_is_over_once_its_slot_is_closed() {
        let (mut releases, key) = (Releases::default(), SeatKey(1));
        let await_all = |releases: &mut Releases| {
            let (done, over) = oneshot::channel();
            let keys = releases.by_holder(&HolderId::from(&license("m", "b")));
            assert_eq!(keys, [key]);
            releases.awaiting.push((keys, done));
            over
        };
        releases.begin(key, &license("m", "a"));
        let mut early = await_all(&mut releases);
        releases.slots.insert(key, HolderId::from(&license("m", "a")));
        releases.seats.remove(&key);
        let mut late = await_all(&mut releases);
        releases.tell_over();
        assert!(early.try_recv().is_err() && late.try_recv().is_err(), "the slot is not closed");
        releases.slot_closed(key);
        releases.tell_over();
        assert_eq!((early.try_recv(), late.try_recv()), (Ok(()), Ok(())));
    }
}
