//! The address of a client: the peer of the connection, or the address named by a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{FORWARDED, HeaderMap, HeaderName};

use crate::settings::{Networks, ProxyHeader};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The trusted proxies, and the header with their clients' addresses.
#[derive(Clone, Debug)]
pub(crate) struct Proxies {
    trusted: Networks,
    header: ProxyHeader,
}

impl Proxies {
    pub(crate) fn new(trusted: Networks, header: ProxyHeader) -> Self {
        Self { trusted, header }
    }

    /// Returns the right-most address that is not a trusted proxy. Each proxy appends the address of its
    /// peer, so entries left of an untrusted address can be forged. If a trusted proxy names no client, the
    /// proxy itself is the client.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusted.contain(client) {
            return client;
        }
        let (name, split): (_, Split) = match self.header {
            ProxyHeader::XForwardedFor => (X_FORWARDED_FOR, listed),
            ProxyHeader::Forwarded => (FORWARDED, forwarded),
        };
        let lines: Vec<_> = headers.get_all(name).iter().collect();
        for line in lines.into_iter().rev() {
            let told = line.to_str().map_or_else(|_| vec![None], split);
            for hop in told.into_iter().rev() {
                let Some(address) = hop else { return client };
                client = address;
                if !self.trusted.contain(client) {
                    return client;
                }
            }
        }
        client
    }
}

/// Splits a header line into addresses, with `None` for an invalid entry.
type Split = fn(&str) -> Vec<Option<IpAddr>>;

/// Returns the addresses of an `X-Forwarded-For` line, with `None` for an invalid entry.
fn listed(line: &str) -> Vec<Option<IpAddr>> {
    line.split(',').map(|text| address(text.trim())).collect()
}

/// Returns the addresses of a `Forwarded` line (RFC 7239), with `None` for an element without exactly one
/// valid `for`.
fn forwarded(line: &str) -> Vec<Option<IpAddr>> {
    let told = |element: &str| {
        let mut named = split_outside_quotes(element, ';').into_iter().filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then(|| unquoted(value.trim()))
        });
        let only = named.next().filter(|_| named.next().is_none())??;
        address(&only)
    };
    split_outside_quotes(line, ',').into_iter().map(told).collect()
}

/// Parses an address with or without a port. An IPv6 address with a port needs brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let whole = bare.parse::<IpAddr>().ok();
    let address = whole.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?;
    Some(address.to_canonical())
}

/// Returns the contents of a quoted string, or the unquoted text; `None` for a misplaced quote.
fn unquoted(text: &str) -> Option<String> {
    let Some(inner) = text.strip_prefix('"') else { return (!text.contains('"')).then(|| text.to_owned()) };
    let (mut plain, mut chars) = (String::new(), inner.chars());
    loop {
        match chars.next()? {
            '"' => return chars.next().is_none().then_some(plain),
            '\\' => plain.push(chars.next()?),
            char => plain.push(char),
        }
    }
}

/// Splits at separators outside of quoted strings.
fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(|char| {
        let is_separator = char == separator && !is_quoted;
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_separator
    })
    .collect()
}

#[cfg(test)]
mod tests;
