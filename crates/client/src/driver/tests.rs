//! Tests of the driver without a server.

use reqwest::dns::{Name, Resolve, Resolving};

use super::*;
use crate::client::Client;
use crate::servers::Servers;
use crate::shared::Shared;
use crate::slot::Slots;
use crate::state_dir::StateDir;
use crate::tokens::{TokenCache, TokenSource, Tokens};
use crate::wire::Wire;

/// Panics within the request that looks a name up.
struct Panicking;

impl Resolve for Panicking {
    fn resolve(&self, _: Name) -> Resolving {
        panic!("planted")
    }
}

#[tokio::test]
async fn a_request_that_panics_has_failed() {
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).dns_resolver(Arc::new(Panicking));
    let servers = Servers::new(&["http://seats.example".to_owned()]).unwrap();
    let wire = Arc::new(Wire { http: http.build().unwrap(), servers });
    let tokens = Arc::new(Tokens::Shared(TokenCache::new(TokenSource::Static("t".to_owned()))));
    let (commands, received) = mpsc::unbounded_channel();
    tokio::spawn(Driver::new(Transport { wire, tokens }, received, false).run());
    let slots = Slots::new(StateDir::None, String::new());
    let client = Client::new(commands, tokio::runtime::Handle::current(), None, slots);
    let acquire = client.license("K").machine("m").patience(Duration::from_millis(100)).acquire();
    let result = tokio::time::timeout(Duration::from_secs(20), acquire).await.unwrap();
    assert!(matches!(result, Err(Error::Offline { .. })), "{result:?}");
}

/// A program may hold thousands of seats: a field of every seat earns its place here, and a rare one is boxed.
#[test]
fn a_seat_of_a_driver_is_small() {
    assert!(size_of::<Entry>() <= 488, "{} bytes", size_of::<Entry>());
    assert!(size_of::<Shared>() <= 208, "{} bytes", size_of::<Shared>());
}
