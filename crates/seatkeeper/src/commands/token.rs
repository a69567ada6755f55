//! `seatkeeper token`: signs a token and prints it.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use seatkeeper_server::auth::{TokenRequest, is_name, mint};

use super::Error;
use crate::args::DataDirArgs;
use crate::{duration, output, settings};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The tenant of the token
    #[arg(long, default_value = "default", value_parser = name)]
    tenant: String,
    /// The user of the token
    #[arg(long, value_parser = name)]
    user: String,
    /// Further scopes, separated by spaces: admin, service
    #[arg(long, default_value = "", value_name = "SCOPES")]
    scope: String,
    /// The lifetime: 90s, 5m, 1h, 30d
    #[arg(long, default_value = "1h", value_parser = duration::parse)]
    ttl: Duration,
    #[command(flatten)]
    data: DataDirArgs,
}

/// Parses a name that the server accepts in a token.
fn name(text: &str) -> Result<String, &'static str> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("must have 1 to 255 characters, and no control characters")
    }
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
