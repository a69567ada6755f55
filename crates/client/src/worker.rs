//! Threads for blocking calls: sources of tokens and files.
//!
//! `tokio::task::spawn_blocking` panics if the system has no room for the first thread of the pool. [`run`] starts a thread
//! for every call, and fails without room for a thread.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::sync::{Mutex, oneshot};

/// Runs `call` on a new thread, and returns the output. Fails without room for a thread, and after a panic of the call. A
/// dropped future leaves the thread running.
pub(crate) async fn run<T: Send + 'static>(
    name: &str,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, output) = oneshot::channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        // The caller may have stopped to wait.
        let _ = done.send(call());
    })?;
    output.await.map_err(|_| io::Error::other("the call panicked"))
}

/// Runs `call` like [`run`], after the end of an earlier call with the same lock. The lock outlives a caller without patience:
/// hung calls keep a single thread.
pub(crate) async fn run_one_at_a_time<T: Send + 'static>(
    name: &str,
    lock: &Arc<Mutex<()>>,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let one_caller = lock.clone().lock_owned().await;
    let call = move || {
        let _one_caller = one_caller;
        call()
    };
    run(name, call).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_on_a_thread_has_an_output_or_fails() {
        assert_eq!(run("worker", || 7).await.unwrap(), 7);
        assert!(run::<()>("worker", || panic!("planted")).await.is_err());
    }
}
