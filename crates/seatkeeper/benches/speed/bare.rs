//! The bare server, the upper bound of a comparison: the product's HTTP stack parses a small JSON body and answers
//! with a small reply, and does nothing more.

use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::error::Error;

/// The path of its only route.
pub(crate) const PATH: &str = "/ask";

/// A valid request body.
pub(crate) const BODY: &str = r#"{"license_key":"ABCD-EFGH-IJKL-MNOP","machine_id":"machine-0123456789"}"#;

#[derive(Deserialize)]
struct Ask {
    license_key: String,
    machine_id: String,
}

#[derive(Serialize)]
struct Answer {
    session_id: String,
    expires_in_seconds: usize,
    status: &'static str,
}

/// Serves until the process is killed.
pub(crate) fn serve() -> Result<(), Error> {
    on_all_cores(async {
        let app = Router::new().route(PATH, post(answer));
        listen(app).await
    })
}

async fn answer(Json(ask): Json<Ask>) -> Json<Answer> {
    let expires_in_seconds = ask.license_key.len();
    Json(Answer { session_id: ask.machine_id, expires_in_seconds, status: "active" })
}

/// Runs a server on a runtime like the product's.
pub(crate) fn on_all_cores(server: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(server)
}

/// Listens on a free port, and prints its address.
pub(crate) async fn listen(app: Router) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::system("listen"))?;
    let address = listener.local_addr().map_err(Error::system("listen"))?;
    println!("listening on http://{address}");
    let listener = listener.tap_io(|stream| {
        // A connection with Nagle's delay is slow, but correct.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await.map_err(Error::system("serve"))
}
