//! Bad input of every kind: each gets a 4xx that says what is wrong, and changes nothing.

mod addresses;
mod bodies;
mod endpoint;
mod fields;
mod headers;
mod queries;
mod sizes;
mod sockets;
mod values;
mod verbs;

use reqwest::Method;

use crate::http::books::Books;
use crate::http::desk::Desk;
use crate::http::exchange::exchange;

/// A tenant with a license, a session and a subscription, of which nothing may change.
struct Siege {
    desk: Desk,
    license: serde_json::Value,
    session: serde_json::Value,
    subscription: serde_json::Value,
    before: Books,
}

impl Siege {
    async fn begin() -> Self {
        Self::of(Desk::open()).await
    }

    /// On a server with settings of its own.
    async fn begin_with(settings: &[(&str, &str)]) -> Self {
        Self::of(Desk::open_with(settings)).await
    }

    async fn of(desk: Desk) -> Self {
        let license = desk.license(serde_json::json!({ "max_seats": 3 })).await;
        let session = desk.seat(&license, "ann", "laptop-1").await;
        let subscription = desk.subscription("sue", "basic").await;
        let before = Books::of(&desk).await;
        Self { desk, license, session, subscription, before }
    }

    /// Checks that nothing has changed, and that the server still does its work.
    async fn withstood(self) {
        assert_eq!(Books::of(&self.desk).await, self.before);
        exchange(self.desk.request(Method::GET, "/readyz")).await.expect(200);
        self.desk.user("ann").heartbeat(&self.session).await.expect(200);
        let session = self.desk.seat(&self.license, "ann", "laptop-2").await;
        self.desk.user("ann").release(&session).await.expect(204);
    }
}
