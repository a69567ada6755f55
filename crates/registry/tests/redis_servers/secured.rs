//! TLS with certificates on both sides, and users with passwords that change.

use std::fs;
use std::path::Path;

use seatkeeper_redis::{Address, Deployment, Login, Password, ServerSettings, Servers, Tls};
use seatkeeper_testbed::authority::Authority;
use seatkeeper_testbed::port;
use seatkeeper_testbed::redis::{Redis, RedisSetup};

use crate::node::Node;

#[tokio::test]
async fn both_sides_show_certificates_and_nobody_comes_in_without() {
    let papers = Papers::new();
    let secured = papers.server();
    let node = Node::over(secured.settings(Some(papers.tls()))).await;
    let pool = node.pool().await;
    let ann = node.admit(&pool, "ann").await;
    secured.redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").take());
    node.renew_soon(ann).await;

    let others = Papers::new();
    for (what, tls) in [
        ("in the clear", None),
        ("without a certificate", Some(Tls { client: None, ..papers.tls() })),
        ("with a stranger's certificate", Some(Tls { client: others.tls().client, ..papers.tls() })),
        ("who does not trust the server", Some(Tls { ca: others.tls().ca, ..papers.tls() })),
    ] {
        let servers = Servers::new(secured.settings(tls));
        let asked = servers.query::<String>("key", &redis::cmd("PING")).await;
        assert!(asked.is_err(), "{what} one comes in: {asked:?}");
    }
}

#[tokio::test]
async fn a_password_that_has_changed_is_read_at_the_next_connection() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    fs::write(&file, "first\n").expect("the directory is writable");
    let redis = Redis::start();
    let user = |rules: &[&str]| {
        redis.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg("seatkeeper").arg(rules).take());
    };
    user(&["on", ">first", "~sk:*", "&sk:*", "+@all", "-@dangerous", "+info"]);
    let deployment = Deployment::Standalone(address(redis.port()));
    let settings = ServerSettings {
        login: Login { username: Some("seatkeeper".to_owned()), password: Password::File(file.clone()) },
        ..ServerSettings::new(deployment)
    };
    let node = Node::over(settings.clone()).await;
    let pool = node.pool().await;
    let ann = node.admit(&pool, "ann").await;

    user(&[">second"]);
    fs::write(&file, "second").expect("the directory is writable");
    user(&["<first"]);
    redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("USER").arg("seatkeeper").take());
    node.renew_soon(ann).await;

    fs::write(&file, "first").expect("the directory is writable");
    let asked = Servers::new(settings).query::<String>("key", &redis::cmd("PING")).await;
    assert!(asked.is_err(), "the old password still counts: {asked:?}");
}

fn address(port: u16) -> Address {
    Address { host: "127.0.0.1".to_owned(), port }
}

/// A server with a TLS port for clients with certificates, and a plain port for the test.
struct Secured {
    redis: Redis,
    port: u16,
}

impl Secured {
    fn settings(&self, tls: Option<Tls>) -> ServerSettings {
        ServerSettings { tls, ..ServerSettings::new(Deployment::Standalone(address(self.port))) }
    }
}

/// An authority with signed certificates of a server and of a node.
struct Papers(Authority);

impl Papers {
    fn new() -> Self {
        let authority = Authority::new();
        authority.sign("server");
        authority.sign("node");
        Self(authority)
    }

    fn tls(&self) -> Tls {
        Tls {
            ca: Some(self.0.path("ca.pem")),
            client: Some((self.0.path("node.pem"), self.0.path("node.key"))),
        }
    }

    fn server(&self) -> Secured {
        let port = port::free();
        let line = |key: &str, value: &Path| format!("{key} {}", value.display());
        let redis = RedisSetup::default()
            .setting(&format!("tls-port {port}"))
            .setting(&line("tls-cert-file", &self.0.path("server.pem")))
            .setting(&line("tls-key-file", &self.0.path("server.key")))
            .setting(&line("tls-ca-cert-file", &self.0.path("ca.pem")))
            .setting("tls-auth-clients yes")
            .start();
        Secured { redis, port }
    }
}
