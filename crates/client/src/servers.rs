//! The servers of a client: equal nodes, of which one is in use until it does not serve.

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;

use crate::error::Error;
use crate::state_dir::server_name;

/// One or several nodes of one installation. Every request goes to the node in use; a node that does not serve is left for
/// the next node of the list.
#[derive(Debug)]
pub(crate) struct Servers {
    bases: Vec<Url>,
    in_use: AtomicUsize,
}

/// A node of [`Servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(usize);

impl Servers {
    /// Parses the addresses; the first one is in use.
    pub(crate) fn new(urls: &[String]) -> Result<Self, Error> {
        let bases = urls.iter().map(|url| address(url)).collect::<Result<_, _>>()?;
        Ok(Self { bases, in_use: AtomicUsize::new(0) })
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

    /// Puts the next node in use, unless another request has left `node` already.
    pub(crate) fn leave(&self, node: Node) {
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
