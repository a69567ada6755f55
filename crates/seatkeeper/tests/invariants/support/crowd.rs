//! Machines that work concurrently until the server is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::machine::Machine;
use super::scene::License;
use crate::harness::Client;

/// Machines per license beyond its seats.
const IN_VAIN: u32 = 2;

/// Machines on several licenses.
pub(crate) struct Crowd {
    pub(crate) machines: Vec<Machine>,
}

/// Machines at work.
pub(crate) struct AtWork {
    machines: JoinSet<Machine>,
    answers: Arc<Answers>,
}

#[derive(Default)]
struct Answers {
    count: AtomicU64,
    more: Notify,
}

impl Crowd {
    pub(crate) fn new(licenses: &[License], seed: u64) -> Self {
        let wanted = licenses.iter().flat_map(|license| (0..license.seats + IN_VAIN).map(move |_| license));
        let machines = wanted.zip(0..).map(|(license, number)| Machine::new(license, number, seed));
        Self { machines: machines.collect() }
    }

    /// Starts every machine. A machine works until it gets no answer.
    pub(crate) fn start(self, client: &Client) -> AtWork {
        let answers = Arc::new(Answers::default());
        let machines = self.machines.into_iter();
        let machines = machines.map(|machine| work(machine, client.clone(), answers.clone())).collect();
        AtWork { machines, answers }
    }
}

impl AtWork {
    /// Waits until the machines have had `answers` answers that changed state. Fails the test if a machine
    /// stops earlier.
    pub(crate) async fn had(&mut self, answers: u64) {
        while self.answers.count.load(Ordering::Relaxed) < answers {
            tokio::select! {
                () = self.answers.more.notified() => {}
                broken_off = self.machines.join_next() => {
                    let machine = broken_off.expect("machines at work").expect("a machine that does not panic");
                    panic!("no answer while the server runs: {machine:?}");
                }
            }
        }
    }

    /// Waits until every machine has noticed that the server is gone.
    pub(crate) async fn gather(self) -> Crowd {
        Crowd { machines: self.machines.join_all().await }
    }
}

async fn work(mut machine: Machine, client: Client, answers: Arc<Answers>) -> Machine {
    while let Ok(counts) = machine.turn(&client).await {
        if counts {
            answers.count.fetch_add(1, Ordering::Relaxed);
            answers.more.notify_one();
        }
    }
    machine
}
