//! Threads for calls that may block: sources of tokens, files, and look-ups of names.
//!
//! Tokio's pool for such calls panics if the system has no room for its first thread. A thread of this module is started for
//! each call, and without room for one the call fails.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Runs `call` on a new thread, and returns its output. Fails if no thread can be started, and after a panic of the call. A
/// dropped future leaves the call to itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_on_a_thread_has_an_output_or_fails() {
        assert_eq!(run("worker", || 7).await.unwrap(), 7);
        assert!(run::<()>("worker", || panic!("planted")).await.is_err());
    }
}
