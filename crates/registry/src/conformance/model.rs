//! The model test: a random run of operations on a backend and on the rule, up to the first difference.
//!
//! The rule runs at the time reported by the backend, so a real clock serves as well as a manual clock. A
//! backend may end a session that is over in an earlier step than the rule, but never later.

mod backend;
mod compare;
mod dice;
mod ops;
mod shadow;
mod steps;

use super::harness::Harness;
use backend::Backend;
use dice::Dice;
use ops::Op;
use shadow::Shadow;

/// Number of steps between full comparisons. Other steps compare the touched pool.
const STEPS_PER_INSPECTION: u64 = 500;

/// Bound of the journal, which is acknowledged after each step and holds at most the events of one sweep.
const JOURNAL_EVENTS_MAX: usize = 10_000;

/// Plays `steps` random steps on a backend and on the rule, over several pools of every kind.
///
/// Panics at the first difference, with the seed and the step that reproduce the run.
pub async fn run<H: Harness>(seed: u64, steps: u64) {
    let h = H::start(JOURNAL_EVENTS_MAX).await;
    let mut dice = Dice::new(seed);
    let mut shadows = Shadow::some(&mut dice, h.ttl());
    let mut backend = Backend::new(&h);
    backend.open_all(&mut shadows).await.unwrap_or_else(|wrong| panic!("seed {seed}, opening: {wrong}"));
    for step in 0..steps {
        let op = Op::random(&mut dice, &mut shadows, backend.now().await);
        if let Err(wrong) = play(&mut backend, &mut shadows, &op).await {
            panic!("seed {seed}, step {step}: {op:#?}\n{wrong}");
        }
        if step % STEPS_PER_INSPECTION == 0
            && let Err(wrong) = backend.inspect(&mut shadows).await
        {
            panic!("seed {seed}, after step {step}: {wrong}");
        }
    }
}

async fn play(
    backend: &mut Backend<'_, impl Harness>,
    shadows: &mut [Shadow],
    op: &Op,
) -> Result<(), String> {
    match op {
        Op::Claim { pool, claim, policy } => backend.claim(&mut shadows[*pool], claim, policy).await,
        Op::Heartbeat { pool, id, who } => backend.heartbeat(&mut shadows[*pool], *id, who).await,
        Op::End { pool, id, who, reason } => backend.end(&mut shadows[*pool], *id, who, *reason).await,
        Op::EndAll { pool, reason } => backend.end_all(&mut shadows[*pool], *reason).await,
        Op::Revise { pool, terms } => backend.revise(&mut shadows[*pool], *terms).await,
        Op::Session { pool, id, who } => backend.session(&mut shadows[*pool], *id, who).await,
        Op::View { pool, max } => backend.view(&mut shadows[*pool], *max).await,
        Op::Sweep { bucket } => backend.sweep(shadows, *bucket).await,
        Op::LetPass(span) => backend.let_pass(*span).await,
    }
}
