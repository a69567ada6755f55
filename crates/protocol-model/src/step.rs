//! The steps of the failover model.

use crate::failover::{Failover, Fallback};
use crate::ledger::{Change, Event, Mode};
use crate::memory::Memory;
use crate::node::{Batch, Node};
use crate::place::Backend;
use crate::world::World;
use crate::{Client, NODES, only};

/// A step. A possible step may also never be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client asks for a seat.
    Claim(Call),
    /// A client retries after a failed request, and finds its own session.
    Resume(Call),
    /// A holder of a seat heartbeats.
    Heartbeat(Call),
    /// A client heartbeats, perhaps late, at a node that knows of no registry. The node renews the session by the
    /// ledger alone.
    RenewByLedger(usize, Client),
    /// A node expires a session, by the time of the called registry.
    Expire(Call),
    /// A client gives up a pending request.
    GiveUp(Client),
    /// A node reads the journal of a registry.
    Read(Backend),
    /// A node commits the batch to the ledger, and answers the clients waiting for the events.
    Commit,
    /// A node reads the bucket's row.
    Confirm(usize),
    /// The lease of a node ends: its last reading of the row is too old.
    LeaseEnds(usize),
    /// A node raises the epoch, to serve from the first registry; the second one is a further source.
    Raise(Backend, Option<Backend>),
    /// A node goes on with a rebuild.
    Rebuild(usize),
    /// The replica catches up with the primary, or a snapshot is taken.
    Replicate,
    /// The replica becomes a primary. The old primary lives on.
    Promote,
    /// The primary starts again with an empty memory.
    RestartEmpty,
    /// The primary restarts from its snapshot.
    RestartOld,
}

/// A call of a client through a node on a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    node: usize,
    place: Backend,
    client: Client,
}

impl Failover {
    /// Returns the world after a step; `None` if the step is not possible or changes nothing.
    pub(crate) fn take(&self, step: Step, world: &World) -> Option<World> {
        let mut next = world.clone();
        self.carry_out(step, &mut next)?;
        Some(next.normalized(self))
    }

    /// Lists every candidate step.
    pub(crate) fn steps(&self, world: &World, steps: &mut Vec<Step>) {
        let places =
            Backend::ALL.into_iter().filter(|&place| place != Backend::Postgres || self.fallback.is_some());
        for place in places.clone() {
            // Nodes with equal knowledge have equal steps.
            let differ = |&node: &usize| node == 0 || world.nodes[node] != world.nodes[node - 1];
            for node in (0..NODES).filter(differ) {
                for client in 0..self.clients as Client {
                    let call = Call { node, place, client };
                    steps.extend(
                        [Step::Claim, Step::Resume, Step::Heartbeat, Step::Expire].map(|step| step(call)),
                    );
                }
            }
            steps.push(Step::Read(place));
        }
        steps.extend((0..NODES).flat_map(|node| [Step::Confirm(node), Step::LeaseEnds(node)]));
        steps.extend((0..self.clients as Client).map(Step::GiveUp));
        if self.fallback == Some(Fallback::LedgerAlone) {
            let clients = 0..self.clients as Client;
            steps.extend(
                (0..NODES)
                    .flat_map(|node| clients.clone().map(move |client| Step::RenewByLedger(node, client))),
            );
        }
        steps.push(Step::Commit);
        for target in places.clone() {
            let sources =
                places.clone().filter(|&place| (place == Backend::Postgres) != (target == Backend::Postgres));
            steps.extend(sources.map(|source| Step::Raise(target, Some(source))));
            steps.push(Step::Raise(target, None));
        }
        steps.extend((0..world.rebuilds.len()).map(Step::Rebuild));
        steps.push(Step::Replicate);
        if world.faults_left > 0 {
            steps.extend([Step::Promote, Step::RestartEmpty, Step::RestartOld]);
        }
    }

    fn carry_out(&self, step: Step, world: &mut World) -> Option<()> {
        match step {
            Step::Claim(call) => self.claim(world, call),
            Step::Resume(call) => self.resume(world, call),
            Step::Heartbeat(call) => self.heartbeat(world, call),
            Step::RenewByLedger(node, client) => renew_by_ledger(world, node, client),
            Step::Expire(call) => self.expire(world, call),
            Step::GiveUp(client) => world.clients[usize::from(client)].waits_for.take().map(|_| ()),
            Step::Read(place) => read(world, place),
            Step::Commit => self.commit(world),
            Step::Confirm(node) => confirm(world, node),
            Step::LeaseEnds(node) => lease_ends(world, node),
            Step::Raise(target, source) => self.raise(world, target, source),
            Step::Rebuild(which) => world.proceed(which, self.safeguards),
            Step::Replicate => replicate(world),
            Step::Promote => promote(world),
            Step::RestartEmpty => restart(world, Memory::LOST),
            Step::RestartOld => {
                let snapshot = (!world.promoted).then(|| world.memory(Backend::Replica).clone())?;
                restart(world, snapshot)
            }
        }
    }

    /// Runs a script if the registry serves the node. Afterwards the pool is open.
    fn script(&self, world: &mut World, call: Call) -> Option<()> {
        world.is_served(call.place, world.nodes[call.node], self.safeguards).then_some(())?;
        let World { ledger, servers, .. } = world;
        servers[call.place as usize].memory.open(ledger);
        Some(())
    }

    fn claim(&self, world: &mut World, call: Call) -> Option<()> {
        let Call { node, place, client } = call;
        let in_turn = client == 0 || world.clients[usize::from(client) - 1].has_asked;
        (in_turn && !world.clients[usize::from(client)].has_asked).then_some(())?;
        self.script(world, call)?;
        let epoch = world.nodes[node].epoch;
        let memory = world.memory_mut(place);
        (memory.live.count_ones() < self.limit).then_some(())?;
        memory.admit(client, epoch);
        let waits_for = Some((epoch, memory.seq)).filter(|_| !self.answers_by_journal);
        let is_answered = self.answers_by_journal && world.nodes[node].has_lease;
        let asker = &mut world.clients[usize::from(client)];
        (asker.has_asked, asker.waits_for) = (true, waits_for);
        if is_answered {
            asker.answer();
        }
        world.renewed(client, Some(place));
        Some(())
    }

    /// Resumes once the events before are on record, at a node with a lease.
    fn resume(&self, world: &mut World, call: Call) -> Option<()> {
        let asker = &world.clients[usize::from(call.client)];
        (asker.has_asked && asker.waits_for.is_none() && !asker.holds).then_some(())?;
        self.script(world, call)?;
        let memory = world.memory(call.place);
        let on_record = memory.has(call.client) && memory.journal.is_empty();
        (on_record && world.nodes[call.node].has_lease).then_some(())?;
        world.clients[usize::from(call.client)].answer();
        world.renewed(call.client, Some(call.place));
        Some(())
    }

    fn heartbeat(&self, world: &mut World, call: Call) -> Option<()> {
        world.clients[usize::from(call.client)].holds.then_some(())?;
        self.script(world, call)?;
        (world.memory(call.place).has(call.client) && world.nodes[call.node].has_lease).then_some(())?;
        world.renewed(call.client, Some(call.place));
        Some(())
    }

    fn expire(&self, world: &mut World, call: Call) -> Option<()> {
        self.script(world, call)?;
        let epoch = world.nodes[call.node].epoch;
        let memory = world.memory_mut(call.place);
        memory.has(call.client).then_some(())?;
        memory.expire(call.client, epoch);
        if memory.told_elsewhere & only(call.client) == 0 {
            // Every answer to the client has outlived its TTL.
            let asker = &mut world.clients[usize::from(call.client)];
            (asker.holds, asker.waits_for) = (false, None);
        }
        Some(())
    }

    fn commit(&self, world: &mut World) -> Option<()> {
        let Batch { from, events } = world.batch.take()?;
        // A refused batch is dropped, and its clients give up.
        if world.ledger.apply(&events, self.safeguards).is_ok() {
            world.memory_mut(from).acknowledge(&events);
            for &Event { seq, epoch, change } in &events {
                if let Change::Admitted(client) = change {
                    let asker = &mut world.clients[usize::from(client)];
                    if asker.waits_for.take_if(|awaited| *awaited == (epoch, seq)).is_some() {
                        asker.answer();
                    }
                }
            }
        }
        Some(())
    }

    /// Raises the epoch: possible for every node at any time, with or without a reason.
    fn raise(&self, world: &mut World, target: Backend, source: Option<Backend>) -> Option<()> {
        let is_there = |place| place != Backend::Replica || world.promoted;
        (world.ledger.epoch < self.epochs).then_some(())?;
        (is_there(target) && source.is_none_or(is_there)).then_some(())?;
        // A Redis that cannot be reached loses answered admissions, whatever the rules.
        let mode = world.ledger.to_replay(self.safeguards).mode;
        let has_journal = |place| world.is_used(place, mode);
        let is_reached = has_journal(target) || source.is_some_and(has_journal);
        (is_reached || !self.answers_by_journal).then_some(())?;
        let mode = self.mode_for(target);
        world.raise(target, source, mode, self.safeguards);
        Some(())
    }

    /// Returns the mode of a bucket with the registry `target`.
    fn mode_for(&self, target: Backend) -> Mode {
        match (target, self.fallback) {
            (Backend::Primary | Backend::Replica, _) => Mode::Redis,
            (Backend::Postgres, Some(Fallback::LedgerAlone)) => Mode::LedgerAlone,
            (Backend::Postgres, Some(Fallback::Postgres) | None) => Mode::Postgres,
        }
    }
}

/// Renews a session that is live on record, at a node with a lease. Neither the node nor the client knows of an end
/// without a record.
fn renew_by_ledger(world: &mut World, node: usize, client: Client) -> Option<()> {
    let Node { mode, has_lease, .. } = world.nodes[node];
    (mode == Mode::LedgerAlone && has_lease).then_some(())?;
    let asker = &mut world.clients[usize::from(client)];
    (asker.was_answered && world.ledger.live() & only(client) != 0).then_some(())?;
    asker.answer();
    world.renewed(client, None);
    Some(())
}

fn read(world: &mut World, from: Backend) -> Option<()> {
    world.batch.is_none().then_some(())?;
    (from != Backend::Replica || world.promoted).then_some(())?;
    let events = world.memory(from).journal.clone();
    (!events.is_empty()).then_some(())?;
    world.batch = Some(Batch { from, events });
    Some(())
}

/// Reads the row, if the row has changed.
fn confirm(world: &mut World, node: usize) -> Option<()> {
    let (epoch, mode) = (world.ledger.epoch, world.ledger.mode);
    let node = &mut world.nodes[node];
    (node.epoch < epoch).then_some(())?;
    (node.epoch, node.mode, node.has_lease) = (epoch, mode, true);
    Some(())
}

/// Ends a lease on an old epoch. A lease on the ledger's epoch is renewable at any time, so its end makes no
/// difference.
fn lease_ends(world: &mut World, node: usize) -> Option<()> {
    let epoch = world.ledger.epoch;
    let node = &mut world.nodes[node];
    (node.has_lease && node.epoch < epoch).then_some(())?;
    node.has_lease = false;
    Some(())
}

fn replicate(world: &mut World) -> Option<()> {
    (!world.promoted
        && world.faults_left > 0
        && world.memory(Backend::Replica) != world.memory(Backend::Primary))
    .then_some(())?;
    *world.memory_mut(Backend::Replica) = world.memory(Backend::Primary).clone();
    Some(())
}

fn promote(world: &mut World) -> Option<()> {
    (!world.promoted).then_some(())?;
    world.promoted = true;
    world.faults_left = world.faults_left.checked_sub(1)?;
    Some(())
}

fn restart(world: &mut World, memory: Memory) -> Option<()> {
    world.faults_left = world.faults_left.checked_sub(1)?;
    let server = world.server(Backend::Primary);
    server.memory = memory;
    server.identity += Backend::ALL.len() as u8;
    Some(())
}
