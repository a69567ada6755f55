//! Look-ups of the names of servers.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::watch;

/// The greatest age of a look-up in flight for further connections to join. A hung look-up must not keep the client from a
/// recovered network.
const SHARED_MAX: Duration = Duration::from_secs(5);

/// The addresses of a name, or the error of the system.
type Answer = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// Asks the system for the addresses of a name on a new thread. Without room for a thread the look-up fails; the resolver of
/// `reqwest` panics. Connections that wait for a name share a look-up.
#[derive(Debug)]
pub(crate) struct Resolver {
    look_up: fn(&str) -> io::Result<Vec<SocketAddr>>,
    in_flight: Arc<Mutex<HashMap<String, LookUp>>>,
}

/// A look-up in flight.
#[derive(Debug)]
struct LookUp {
    began: Instant,
    answer: watch::Receiver<Option<Answer>>,
}

impl Resolver {
    /// Creates the resolver over `getaddrinfo`.
    pub(crate) fn new() -> Self {
        Self { look_up: ask_system, in_flight: Arc::default() }
    }

    /// Joins the look-up of `name` in flight, or starts one.
    fn join(&self, name: &str) -> io::Result<watch::Receiver<Option<Answer>>> {
        let mut in_flight = lock(&self.in_flight);
        if let Some(earlier) = in_flight.get(name).filter(|earlier| earlier.began.elapsed() < SHARED_MAX) {
            return Ok(earlier.answer.clone());
        }
        let (answered, answer) = watch::channel(None);
        let (look_up, others, host, own) =
            (self.look_up, self.in_flight.clone(), name.to_owned(), answer.clone());
        thread::Builder::new().name("seatkeeper-name".to_owned()).spawn(move || {
            let found = look_up(&host).map_err(Arc::new);
            let mut in_flight = lock(&others);
            // A later look-up may have replaced an entry older than `SHARED_MAX`.
            if in_flight.get(&host).is_some_and(|current| current.answer.same_channel(&own)) {
                in_flight.remove(&host);
            }
            drop(in_flight);
            answered.send_replace(Some(found));
        })?;
        in_flight.insert(name.to_owned(), LookUp { began: Instant::now(), answer: answer.clone() });
        Ok(answer)
    }

    async fn addresses(answer: io::Result<watch::Receiver<Option<Answer>>>) -> Answer {
        let mut answer = answer?;
        let found = answer.wait_for(Option::is_some).await;
        found.map_err(io::Error::other)?.clone().unwrap_or_else(|| Ok(Vec::new()))
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.join(name.as_str());
        Box::pin(async move {
            let addresses: Addrs = Box::new(Self::addresses(answer).await?.into_iter());
            Ok(addresses)
        })
    }
}

fn ask_system(name: &str) -> io::Result<Vec<SocketAddr>> {
    // The connection replaces the port.
    (name, 0).to_socket_addrs().map(Iterator::collect)
}

fn lock(in_flight: &Mutex<HashMap<String, LookUp>>) -> MutexGuard<'_, HashMap<String, LookUp>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    async fn addresses(resolver: &Resolver, name: &str) -> Answer {
        Resolver::addresses(resolver.join(name)).await
    }

    #[tokio::test]
    async fn the_system_knows_this_host() {
        let found = addresses(&Resolver::new(), "localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
    }

    #[tokio::test]
    async fn one_look_up_serves_all_that_wait_and_a_later_one_asks_again() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        static GATE: Mutex<()> = Mutex::new(());
        fn look_up(_: &str) -> io::Result<Vec<SocketAddr>> {
            ASKED.fetch_add(1, Ordering::Relaxed);
            drop(GATE.lock().unwrap());
            Err(io::Error::from(io::ErrorKind::NotFound))
        }
        let resolver = Resolver { look_up, in_flight: Arc::default() };
        let closed = GATE.lock().unwrap();
        let waiting: Vec<_> = (0..100).map(|_| resolver.join("seats.example")).collect();
        drop(closed);
        for answer in waiting {
            let error = Resolver::addresses(answer).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        addresses(&resolver, "seats.example").await.unwrap_err();
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
        assert!(lock(&resolver.in_flight).is_empty());
    }

    #[tokio::test]
    async fn a_hung_look_up_holds_up_no_later_connection() {
        let resolver = Resolver::new();
        let (_hung, answer) = watch::channel(None);
        let began = Instant::now().checked_sub(SHARED_MAX).unwrap();
        lock(&resolver.in_flight).insert("localhost".to_owned(), LookUp { began, answer });
        assert!(addresses(&resolver, "localhost").await.is_ok());
        assert!(lock(&resolver.in_flight).is_empty());
    }
}
