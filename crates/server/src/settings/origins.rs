//! Origins of web pages, as the header `Origin` names them.

use std::fmt;
use std::str::FromStr;

use axum::http::uri::Authority;
use serde::{Serialize, Serializer};

use super::comma_list::CommaList;

/// Origins of web pages: in a file a list of texts, in a variable one text with commas.
pub type Origins = CommaList<Origin>;

/// An origin as browsers write it in the header `Origin`, or `*` for every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// The error for a text that is no origin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no origin: want `*`, or scheme://host[:port] without a path, as in https://app.example.com"
)]
pub struct InvalidOrigin(String);

/// Stands for every origin.
const ANY: &str = "*";

/// Ports that browsers leave out of an origin.
const DEFAULT_PORTS: [(&str, u16); 2] = [("http", 80), ("https", 443)];

impl CommaList<Origin> {
    /// Returns `true` if the list names `origin` or has `*`.
    pub fn allow(&self, origin: &str) -> bool {
        self.0.iter().any(|allowed| allowed.0 == origin || allowed.0 == ANY)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;
    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        if text == ANY {
            return Ok(Self(ANY.to_owned()));
        }
        normalized(text).map(Self).ok_or_else(|| InvalidOrigin(text.to_owned()))
    }
}

/// Returns the origin as browsers write it: in lower case, and without the default port of its scheme.
fn normalized(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (scheme, rest) = text.split_once("://")?;
    let authority: Authority = rest.parse().ok()?;
    let (host, port) = (authority.host(), authority.port_u16());
    let written = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    if !is_scheme(scheme) || !is_host(host) || written != rest {
        return None;
    }
    let is_default = port.is_some_and(|port| DEFAULT_PORTS.contains(&(scheme, port)));
    Some(format!("{scheme}://{}", if is_default { host } else { rest }))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
}

/// Returns `true` for a name or an address. A name with `*` is none, for browsers send whole names.
fn is_host(text: &str) -> bool {
    let is_name = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    let is_address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => is_address(address),
        None => !text.is_empty() && text.chars().all(is_name),
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
