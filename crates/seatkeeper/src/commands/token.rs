//! `seatkeeper token`: signs a token and prints it.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use seatkeeper_core::is_name;
use seatkeeper_server::auth::{SCOPE_WORDS, TokenRequest, mint};

use super::Error;
use crate::args::DataDirArgs;
use crate::{duration, output, settings};

/// The lifetimes of tokens.
const LIFETIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_650 * 86_400);

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The tenant of the token
    #[arg(long, default_value = "default", value_parser = name)]
    tenant: String,
    /// The user of the token
    #[arg(long, value_parser = name)]
    user: String,
    /// Further scopes, separated by spaces: admin, service
    #[arg(long, default_value = "", value_name = "SCOPES", value_parser = scopes)]
    scope: String,
    /// The lifetime, 1s to 3650d: 90s, 5m, 1h, 30d
    #[arg(long, default_value = "1h", value_parser = lifetime)]
    ttl: Duration,
    #[command(flatten)]
    data: DataDirArgs,
}

/// Parses a name that the server accepts in a token.
fn name(text: &str) -> Result<String, &'static str> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("must have 1 to 255 characters in at most 512 bytes, and no control characters")
    }
}

/// Parses scopes. A server ignores an unknown scope, so the caller would be refused later and not learn why.
fn scopes(text: &str) -> Result<String, String> {
    match text.split_ascii_whitespace().find(|word| !SCOPE_WORDS.contains(word)) {
        Some(unknown) => Err(format!("there is no scope {unknown}: use {}", SCOPE_WORDS.join(" or "))),
        None => Ok(text.to_owned()),
    }
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = duration::parse(text).map_err(|error| error.to_string())?;
    if LIFETIMES.contains(&lifetime) { Ok(lifetime) } else { Err("must be from 1s to 3650d".to_owned()) }
}

pub(crate) fn run(args: &TokenArgs) -> Result<ExitCode, Error> {
    let settings = settings::load(&args.data.sources())?;
    let request = TokenRequest {
        tenant: args.tenant.clone(),
        user: args.user.clone(),
        scopes: args.scope.clone(),
        ttl: args.ttl,
    };
    output::line(mint(&settings, &request)?)?;
    Ok(ExitCode::SUCCESS)
}
