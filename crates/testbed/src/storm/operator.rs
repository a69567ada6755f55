//! The operator of a pool, who changes its limit during a round.

use std::sync::Arc;

use seatkeeper_load::{Call, Error, FixedRequest, Target};

use super::client::{Scene, others_turns};
use super::pool::Operator;

/// A change, with the expected status of its answer.
#[derive(Clone)]
pub(super) struct Change {
    call: Call,
    status_expected: u16,
}

impl Change {
    fn new(target: &Target, request: FixedRequest) -> Result<Self, Error> {
        let call = Call::new(target, request.method, &request.path, request.body)?;
        Ok(Self { call, status_expected: request.status_expected })
    }

    pub(super) async fn make(&self, scene: &Scene) {
        let mut line = scene.exchange.line().await;
        let answer = line.connection.send(&self.call).await;
        scene.exchange.hang_up(line);
        match answer {
            Ok(reply) if reply.status == self.status_expected => {
                scene.watch.note(|statistics| statistics.changed += 1);
            }
            Ok(reply) => scene.watch.unexpected(reply.status),
            Err(failure) => scene.watch.failed(&failure),
        }
    }

    /// Makes the change after other tasks had `turns` turns.
    pub(super) async fn make_after(self, turns: u32, scene: Arc<Scene>) -> Result<(), Error> {
        others_turns(turns).await;
        self.make(&scene).await;
        Ok(())
    }
}

/// The operator's possible changes during rounds, and the changes to make at the end.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) meanwhile: Vec<Change>,
    pub(super) at_the_end: Vec<Change>,
}

impl Changes {
    pub(super) fn new(operator: Option<Operator>) -> Result<Self, Error> {
        let Some(Operator { target, changes, settled }) = operator else { return Ok(Self::default()) };
        let all = |requests: Vec<FixedRequest>| {
            requests.into_iter().map(|request| Change::new(&target, request)).collect::<Result<_, _>>()
        };
        Ok(Self { meanwhile: all(changes)?, at_the_end: all(settled)? })
    }
}
