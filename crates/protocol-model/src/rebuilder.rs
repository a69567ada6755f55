//! The numbered steps of a rebuild in `docs/failover.md`.

use crate::ledger::{Event, Mode, Refused};
use crate::memory::Key;
use crate::place::Backend;
use crate::rebuild::{Rebuild, Stage};
use crate::world::World;
use crate::{Clients, Safeguards};

impl World {
    /// 2: raises the epoch for `target`, in `mode`.
    pub(crate) fn raise(&mut self, target: Backend, source: Option<Backend>, mode: Mode, by: Safeguards) {
        let unreplayed = self.ledger.to_replay(by);
        self.ledger.unreplayed = Some(unreplayed);
        self.ledger.epoch += 1;
        self.ledger.mode = mode;
        self.rebuilds.push(Rebuild {
            epoch: self.ledger.epoch,
            target,
            source,
            unreplayed_epoch: unreplayed.epoch,
            is_renewed_by_ledger: [Some(mode), unreplayed.lower_mode].contains(&Some(Mode::LedgerAlone)),
            stage: Stage::Raised,
        });
    }

    /// Takes the next step of a rebuild.
    pub(crate) fn proceed(&mut self, which: usize, by: Safeguards) -> Option<()> {
        let rebuild = *self.rebuilds.get(which)?;
        let stage = match rebuild.stage {
            Stage::Raised => self.begin(rebuild)?,
            Stage::Begun => self.replay_old_epoch(rebuild, by)?,
            Stage::Replayed => self.note_replay(rebuild, by)?,
            Stage::Noted { seq, live } => self.fill(rebuild, seq, live, by)?,
            Stage::Filled => {
                self.finish(rebuild)?;
                if by.replay_is_noted_before_serving {
                    self.rebuilds.remove(which);
                    return Some(());
                }
                Stage::Served
            }
            Stage::Served => {
                self.ledger.note_replay(rebuild.epoch)?;
                self.rebuilds.remove(which);
                return Some(());
            }
        };
        self.rebuilds[which].stage = stage;
        Some(())
    }

    /// 3: source and target stop serving, for good under every lower epoch.
    fn begin(&mut self, rebuild: Rebuild) -> Option<Stage> {
        let epoch = rebuild.epoch;
        for place in rebuild.source.into_iter().chain([rebuild.target]) {
            let memory = self.memory_mut(place);
            if memory.epoch() < epoch {
                memory.key = Key::Rebuilding { epoch };
            }
        }
        self.memory(rebuild.target).is_rebuilding(epoch).then_some(Stage::Begun)
    }

    /// 4 and 5: after the leases of older epochs are over, replays the surviving events into the ledger, as
    /// far as they fit.
    fn replay_old_epoch(&mut self, rebuild: Rebuild, by: Safeguards) -> Option<Stage> {
        let epoch = rebuild.epoch;
        let leased = self.nodes.iter().any(|node| node.has_lease && node.epoch < epoch);
        if by.rebuild_waits_for_leases && leased {
            return None;
        }
        for place in rebuild.source.into_iter().chain([rebuild.target]) {
            let memory = self.memory(place);
            let survived = if memory.is_rebuilding(epoch) { memory.journal.clone() } else { Vec::new() };
            let served_last =
                |event: &Event| event.epoch == rebuild.unreplayed_epoch || !by.replay_takes_last_epoch_only;
            for event in survived.into_iter().filter(served_last) {
                let may_be_false_end = rebuild.is_renewed_by_ledger && self.ledger.lacks_end(&event);
                if by.replay_stops_at_false_end && may_be_false_end {
                    break;
                }
                match self.ledger.apply(&[Event { epoch, ..event }], by) {
                    Ok(()) => {}
                    Err(Refused::Contradiction) => break,
                    Err(Refused::StaleEpoch) => return None,
                }
            }
        }
        Some(Stage::Replayed)
    }

    /// 5: notes the replay in the ledger, and reads the live sessions.
    fn note_replay(&mut self, rebuild: Rebuild, by: Safeguards) -> Option<Stage> {
        if by.replay_is_noted_before_serving {
            self.ledger.note_replay(rebuild.epoch)?;
        }
        Some(Stage::Noted { seq: self.ledger.seq(), live: self.ledger.live() })
    }

    /// 6: fills the bucket with the ledger's state.
    fn fill(&mut self, rebuild: Rebuild, seq: u8, live: Clients, by: Safeguards) -> Option<Stage> {
        self.memory(rebuild.target).is_rebuilding(rebuild.epoch).then_some(())?;
        if by.rebuild_fills {
            self.memory_mut(rebuild.target).fill(seq, live);
        }
        Some(Stage::Filled)
    }

    /// 7: the target serves.
    fn finish(&mut self, rebuild: Rebuild) -> Option<()> {
        self.memory(rebuild.target).is_rebuilding(rebuild.epoch).then_some(())?;
        let server = self.server(rebuild.target);
        server.memory.key = Key::Serving { epoch: rebuild.epoch, identity: server.identity };
        Some(())
    }
}
