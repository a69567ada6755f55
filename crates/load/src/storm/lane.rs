//! One lane: rounds one after another, on licenses that no other lane uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::task::JoinSet;

use super::client::{Client, Machine, Scene};
use super::exchange::Exchange;
use super::script::{Script, license_of};
use super::watch::Watch;
use super::{License, Statistics, ends};
use crate::{Error, Stopwatch, Violations, api};

/// How many clients there are for each seat.
const CLIENTS_PER_SEAT: u32 = 2;

/// Rounds one after another. Lane `number` of `lanes` plays every `lanes`-th round.
pub(super) struct Lane {
    exchange: Arc<Exchange>,
    stopwatch: Stopwatch,
    seed: u64,
    fields: Vec<Field>,
}

/// A license, and the machines that play on it.
pub(super) struct Field {
    pub(super) scene: Arc<Scene>,
    pub(super) license: License,
    pub(super) number: usize,
    machines: Vec<Machine>,
}

/// The rounds that a lane plays, and how many are over in all lanes.
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

impl Lane {
    pub(super) fn new(exchange: Arc<Exchange>, stopwatch: Stopwatch, seed: u64) -> Self {
        Self { exchange, stopwatch, seed, fields: Vec::new() }
    }

    pub(super) fn add(&mut self, license: License, number: usize) -> Result<(), Error> {
        let clients = license.seats * CLIENTS_PER_SEAT;
        let machines = (0..clients)
            .map(|client| Machine::new(&self.exchange, &license, &format!("storm-{number}-{client}")));
        let machines = machines.collect::<Result<_, _>>()?;
        let watch = Watch::new(format!("number {number} of {} seats", license.seats), license.ttl);
        let scene = Scene { exchange: self.exchange.clone(), stopwatch: self.stopwatch, watch };
        self.fields.push(Field { scene: Arc::new(scene), license, number, machines });
        Ok(())
    }

    pub(super) async fn run<P: Fn(u32)>(
        self,
        number: u32,
        rounds: Arc<Rounds<P>>,
    ) -> Result<(Statistics, Violations), Error> {
        for round in rounds.of_lane(number) {
            let field = &self.fields[license_of(self.seed, round, self.fields.len())];
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
            clients.spawn(client.play(Script::of(self.seed, round, number)));
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        field.scene.watch.note(|statistics| statistics.rounds += 1);
        Ok(())
    }
}

impl Machine {
    pub(super) fn new(exchange: &Exchange, license: &License, name: &str) -> Result<Self, Error> {
        let acquire = api::acquire_call(exchange.target(), &license.key, name)?;
        Ok(Self { name: name.into(), acquire })
    }
}
