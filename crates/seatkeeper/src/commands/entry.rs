//! Shared commands on an entry of the admin API: a license, a plan or a subscription. A new kind of entry
//! implements [`Entry`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Error;
use crate::admin;
use crate::api_client::ApiClient;
use crate::args::{CreationArgs, ServerArgs};
use crate::output;

/// An entry of the admin API, with the fields for the terminal.
pub(super) trait Entry: DeserializeOwned {
    /// The path of the list of entries.
    const PATH: &'static str;

    /// Returns names and values, in the order of the output.
    fn pairs(self) -> Vec<(&'static str, String)>;
}

/// Returns the arguments as the fields of a request. An argument that is not given has no field.
pub(super) fn given(args: &impl Serialize) -> Value {
    let mut fields = json!(args);
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// Creates an entry from arguments, and prints the entry.
pub(super) async fn create<E: Entry>(
    server: &ServerArgs,
    creation: &CreationArgs,
    args: &impl Serialize,
) -> Result<(), Error> {
    let api = admin::connect(server)?;
    let answer = api.create_with_key(E::PATH, given(args), creation.idempotency_key.as_deref()).await?;
    print::<E>(&api, answer, server.json)
}

/// Prints an entry.
pub(super) async fn show<E: Entry>(server: &ServerArgs, id: &str) -> Result<(), Error> {
    let api = admin::connect(server)?;
    let answer = api.get(&path_of::<E>(id)).await?;
    print::<E>(&api, answer, server.json)
}

/// Changes an entry at this version, or at any version, and prints the result.
pub(super) async fn update<E: Entry>(
    server: &ServerArgs,
    id: &str,
    change: Value,
    if_version: Option<u64>,
) -> Result<(), Error> {
    let api = admin::connect(server)?;
    let answer = api.patch_version(&path_of::<E>(id), change, if_version).await?;
    print::<E>(&api, answer, server.json)
}

/// Ends an entry, and prints the result.
pub(super) async fn end<E: Entry>(server: &ServerArgs, id: &str) -> Result<(), Error> {
    let api = admin::connect(server)?;
    let path = path_of::<E>(id);
    api.delete(&path, &[]).await?;
    let answer = api.get(&path).await?;
    print::<E>(&api, answer, server.json)
}

fn path_of<E: Entry>(id: &str) -> String {
    format!("{}/{id}", E::PATH)
}

fn print<E: Entry>(api: &ApiClient, answer: Value, as_json: bool) -> Result<(), Error> {
    if as_json {
        return Ok(output::json(&answer)?);
    }
    let entry: E = api.read(E::PATH, answer)?;
    Ok(output::pairs(entry.pairs())?)
}
