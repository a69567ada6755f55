//! The servers of a client: equal nodes, of which one is in use until it does not serve.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use reqwest::Url;

use crate::error::Error;
use crate::state_dir::server_name;

/// A node is left after this many 5xx in a row. A node that is cut off from the others sends `Retry-After` with every 503.
const UNAVAILABLE_MAX: u32 = 2;

/// One or several nodes of one installation. Every request goes to the node in use; a node that does not serve is left for
/// the next node of the list.
#[derive(Debug)]
pub(crate) struct Servers {
    bases: Vec<Url>,
    in_use: AtomicUsize,
    /// The number of 5xx in a row, for each node.
    unavailable: Vec<AtomicU32>,
}

/// A node of [`Servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(usize);

impl Servers {
    /// Parses the addresses; the first one is in use.
    pub(crate) fn new(urls: &[String]) -> Result<Self, Error> {
        let bases = urls.iter().map(|url| address(url)).collect::<Result<Vec<_>, _>>()?;
        let unavailable = bases.iter().map(|_| AtomicU32::new(0)).collect();
        Ok(Self { bases, in_use: AtomicUsize::new(0), unavailable })
    }

    /// Returns the name of the installation for the state directory: its first address.
    pub(crate) fn name(&self) -> String {
        self.bases.first().map(server_name).unwrap_or_default()
    }

    /// Returns true if no connection is encrypted.
    pub(crate) fn are_plain(&self) -> bool {
        self.bases.iter().all(|base| base.scheme() == "http")
    }

    pub(crate) fn count(&self) -> usize {
        self.bases.len()
    }

    pub(crate) fn in_use(&self) -> Node {
        Node(self.in_use.load(Ordering::Relaxed))
    }

    /// Notes the status of an answer of `node`. Returns true for the second 5xx in a row. Every node of the installation answers
    /// 501 and 505 alike, so these two do not count. A late answer of a node that was left counts for nothing.
    pub(crate) fn note_answer(&self, node: Node, status: u16) -> bool {
        if self.in_use() != node {
            return false;
        }
        let Some(unavailable) = self.unavailable.get(node.0) else { return false };
        if !matches!(status, 500..=599) || matches!(status, 501 | 505) {
            unavailable.store(0, Ordering::Relaxed);
            return false;
        }
        unavailable.fetch_add(1, Ordering::Relaxed) + 1 >= UNAVAILABLE_MAX
    }

    /// Puts the next node in use, unless another request has left `node` already.
    pub(crate) fn leave(&self, node: Node) {
        if let Some(unavailable) = self.unavailable.get(node.0) {
            unavailable.store(0, Ordering::Relaxed);
        }
        let next = (node.0 + 1) % self.bases.len().max(1);
        // A failed exchange means that another request has moved on.
        let _ = self.in_use.compare_exchange(node.0, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the address of `path` below the path of the node: a server behind a proxy has a path.
    pub(crate) fn address(&self, node: Node, path: &str) -> Option<Url> {
        self.bases.get(node.0).map(|base| below(base, path))
    }
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn address(url: &str) -> Result<Url, Error> {
    // An error may be logged, and the address may hold a password.
    let wrong = || match url.contains('@') {
        true => Error::AddressWithUser,
        false => Error::Address { url: url.to_owned() },
    };
    let base: Url = url.parse().map_err(|_| wrong())?;
    let has_user = !base.username().is_empty() || base.password().is_some();
    match base.scheme() {
        "http" | "https" if base.has_host() && !has_user => Ok(base),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_base_is_kept() {
        let address = |base: &str| below(&base.parse().unwrap(), "/api/v1/x").to_string();
        assert_eq!(address("http://seats"), "http://seats/api/v1/x");
        assert_eq!(address("https://host:8443/"), "https://host:8443/api/v1/x");
        assert_eq!(address("https://host/licensing"), "https://host/licensing/api/v1/x");
        assert_eq!(address("https://host/a/b//?q=1#f"), "https://host/a/b/api/v1/x");
    }

    #[test]
    fn an_address_has_no_user_name_and_no_error_shows_a_password() {
        for url in
            ["https://ann:secret@seats", "http://ann@seats:8080", "ann:secret@seats:8080", "ftp://a:secret@b"]
        {
            let error = Servers::new(&[url.to_owned()]).unwrap_err();
            assert!(matches!(error, Error::AddressWithUser), "{url}: {error:?}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_second_5xx_in_a_row_counts() {
        let servers = Servers::new(&["http://a".to_owned(), "http://b".to_owned()]).unwrap();
        let node = servers.in_use();
        let told = |statuses: &[u16]| -> Vec<bool> {
            statuses.iter().map(|status| servers.note_answer(node, *status)).collect()
        };
        assert_eq!(told(&[503, 200, 502, 501, 500, 505, 504, 429]), [false; 8]);
        assert_eq!(told(&[503, 502]), [false, true]);
    }

    #[test]
    fn each_node_has_a_count_that_begins_anew() {
        let servers = Servers::new(&["http://a".to_owned(), "http://b".to_owned()]).unwrap();
        let (first, second) = (Node(0), Node(1));
        assert!(!servers.note_answer(first, 503));
        servers.leave(first);
        assert!(!servers.note_answer(second, 503), "the first 5xx of the second node");
        servers.leave(second);
        assert!(!servers.note_answer(first, 503), "the first 5xx since the return");
        assert!(servers.note_answer(first, 503));
    }

    #[test]
    fn a_late_answer_of_a_node_that_was_left_counts_for_nothing() {
        let servers = Servers::new(&["http://a".to_owned(), "http://b".to_owned()]).unwrap();
        let (first, second) = (Node(0), Node(1));
        servers.leave(first);
        assert!(!servers.note_answer(first, 503));
        assert!(!servers.note_answer(first, 503), "a node that is not in use cannot be left");
        servers.leave(second);
        assert!(!servers.note_answer(first, 503), "the first 5xx since the return");
    }

    #[test]
    fn a_node_is_left_once_however_many_requests_fail_on_it() {
        let servers = Servers::new(&["http://a".to_owned(), "http://b".to_owned()]).unwrap();
        let first = servers.in_use();
        servers.leave(first);
        servers.leave(first);
        assert_eq!(servers.in_use(), Node(1));
        servers.leave(Node(1));
        assert_eq!(servers.in_use(), first);
    }
}
