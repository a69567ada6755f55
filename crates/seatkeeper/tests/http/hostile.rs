//! Bad input of every kind: the server answers with a 4xx that names the error, and changes nothing. A new
//! kind is a module of its own.

mod addresses;
mod bodies;
mod endpoint;
mod fields;
mod headers;
mod nested;
mod queries;
mod sizes;
mod sockets;
mod values;
mod verbs;

use reqwest::Method;

use crate::http::books::Books;
use crate::http::exchange::exchange;
use crate::http::tenant_client::TenantClient;

/// A tenant whose license, session and subscription must not change.
struct Siege {
    api: TenantClient,
    license: serde_json::Value,
    session: serde_json::Value,
    subscription: serde_json::Value,
    before: Books,
}

impl Siege {
    async fn begin() -> Self {
        Self::new(TenantClient::open()).await
    }

    /// Starts a server with extra settings.
    async fn begin_with(settings: &[(&str, &str)]) -> Self {
        Self::new(TenantClient::open_with(settings)).await
    }

    async fn new(api: TenantClient) -> Self {
        let license = api.license(serde_json::json!({ "max_seats": 3, "clients": "key" })).await;
        let session = api.seat(&license, "ann", "laptop-1").await;
        let subscription = api.subscription("sue", "basic").await;
        let before = Books::new(&api).await;
        Self { api, license, session, subscription, before }
    }

    /// Asserts that the tenant is unchanged, and that the server still works.
    async fn withstood(self) {
        assert_eq!(Books::new(&self.api).await, self.before);
        exchange(self.api.request(Method::GET, "/readyz")).await.expect(200);
        self.api.user("ann").heartbeat(&self.session).await.expect(200);
        let session = self.api.seat(&self.license, "ann", "laptop-2").await;
        self.api.user("ann").release(&session).await.expect(204);
    }
}
