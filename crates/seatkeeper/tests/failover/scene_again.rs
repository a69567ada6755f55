//! Scenes on new nodes, repeated if a node stood still: a node without processors for seconds loses its lease,
//! and leaves buckets unserved, without a fault in the product.

use super::support::Nodes;

/// The log lines of a node that got no processor for seconds.
const STALLED: [&str; 2] = ["this process stood still", "this node has lost the ledger"];

/// The most attempts on a machine on which nodes stand still.
const SCENES_MAX: usize = 3;

/// Plays a scene until the scene returns `true`, at most [`SCENES_MAX`] times. A scene returns `false` if the
/// machine was too slow for a verdict.
pub(crate) async fn played(scene: impl AsyncFn() -> bool) {
    for _ in 0..SCENES_MAX {
        if scene().await {
            return;
        }
        println!("the machine was too slow for a verdict");
    }
    panic!("the machine is too slow: no verdict in {SCENES_MAX} scenes");
}

/// Ends a scene, and returns whether its verdict counts. Fails the test if the scene ended with `Err` although
/// no node stood still.
pub(crate) fn judged(mut nodes: Nodes, verdict: Result<(), String>) -> bool {
    let Err(broken) = verdict else {
        drop(nodes.close());
        return true;
    };
    let logs: String = nodes.harnesses.iter_mut().map(|harness| harness.stop().1).collect();
    assert!(STALLED.iter().any(|line| logs.contains(line)), "{broken}:\n{logs}");
    println!("{broken}");
    false
}
