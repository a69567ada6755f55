//! A lane: rounds in sequence, on pools of its own. Lanes run concurrently.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seatkeeper_load::api::Naming;
use seatkeeper_load::{Error, Stopwatch, Violations};
use tokio::task::JoinSet;

use super::client::{Client, Machine, Scene};
use super::exchange::Exchange;
use super::operator::Changes;
use super::script::{self, Manner, Script};
use super::watch::Watch;
use super::{Pool, Statistics, ends};

/// The number of clients for each seat.
const CLIENTS_PER_SEAT: u32 = 2;

/// A sequence of rounds. Lane `number` of `lanes` plays every `lanes`-th round.
pub(super) struct StormLane {
    exchange: Arc<Exchange>,
    stopwatch: Stopwatch,
    seed: u64,
    fields: Vec<Field>,
}

/// A pool, and the machines that use it.
pub(super) struct Field {
    pub(super) scene: Arc<Scene>,
    pub(super) seats: u32,
    pub(super) number: usize,
    pub(super) changes: Changes,
    manner: Manner,
    machines: Vec<Machine>,
}

/// The rounds of every lane, and the number of finished rounds in total.
pub(super) struct Rounds<P> {
    wanted: u32,
    lanes: u32,
    over: AtomicU32,
    progress: P,
}

impl<P: Fn(u32)> Rounds<P> {
    pub(super) fn new(wanted: u32, lanes: usize, progress: P) -> Self {
        Self { wanted, lanes: lanes as u32, over: AtomicU32::new(0), progress }
    }

    fn of_lane(&self, lane: u32) -> impl Iterator<Item = u32> + use<P> {
        (lane..self.wanted).step_by(self.lanes as usize)
    }

    fn one_is_over(&self) {
        let before = self.over.fetch_add(1, Ordering::Relaxed);
        (self.progress)(before + 1);
    }
}

impl StormLane {
    pub(super) fn new(exchange: Arc<Exchange>, stopwatch: Stopwatch, seed: u64) -> Self {
        Self { exchange, stopwatch, seed, fields: Vec::new() }
    }

    pub(super) fn add(&mut self, pool: Pool, number: usize) -> Result<(), Error> {
        let Pool { door, seats, ttl, operator } = pool;
        let manner = Manner::at(&door);
        let watch = Watch::new(format!("number {number} of {seats} seats"), ttl, door.keeps_sessions());
        let scene = Scene { exchange: self.exchange.clone(), stopwatch: self.stopwatch, door, watch };
        let clients = 0..seats * CLIENTS_PER_SEAT;
        let machines = clients.map(|client| Machine::new(&scene, &format!("storm-{number}-{client}")));
        let machines = machines.collect::<Result<_, _>>()?;
        let changes = Changes::new(operator)?;
        self.fields.push(Field { scene: Arc::new(scene), seats, number, changes, manner, machines });
        Ok(())
    }

    pub(super) async fn run<P: Fn(u32)>(
        self,
        number: u32,
        rounds: Arc<Rounds<P>>,
    ) -> Result<(Statistics, Violations), Error> {
        for round in rounds.of_lane(number) {
            let field = &self.fields[script::pool_of(self.seed, round, self.fields.len())];
            self.play(field, round).await?;
            rounds.one_is_over();
        }
        let (mut statistics, mut violations) = (Statistics::default(), Violations::default());
        for field in &self.fields {
            ends::every_seat_is_there(field).await?;
            let (more, worse) = field.scene.watch.findings();
            statistics.add(&more);
            violations.extend(&worse);
        }
        Ok((statistics, violations))
    }

    async fn play(&self, field: &Field, round: u32) -> Result<(), Error> {
        let mut clients = JoinSet::new();
        for (machine, number) in field.machines.iter().zip(0..) {
            let client = Client::new(field.scene.clone(), machine.clone());
            clients.spawn(client.play(Script::new(field.manner, self.seed, round, number)));
        }
        let changes = &field.changes.meanwhile;
        if let Some((number, turns)) = script::change_of(self.seed, round, changes.len()) {
            clients.spawn(changes[number].clone().make_after(turns, field.scene.clone()));
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        field.scene.watch.note(|statistics| statistics.rounds += 1);
        Ok(())
    }
}

impl Machine {
    pub(super) fn new(scene: &Scene, name: &str) -> Result<Self, Error> {
        let claim = scene.door.claim(scene.exchange.target(), name, Naming::Nothing)?;
        Ok(Self { name: name.into(), claim })
    }
}
