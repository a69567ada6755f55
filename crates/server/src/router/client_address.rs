//! Where a client is: at the other end of the connection; or, if a trusted proxy is there, where the proxy says.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{FORWARDED, HeaderMap, HeaderName};

use crate::settings::{Networks, ProxyHeader};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whose word counts, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Proxies {
    trusted: Networks,
    header: ProxyHeader,
}

impl Proxies {
    pub(crate) fn new(trusted: Networks, header: ProxyHeader) -> Self {
        Self { trusted, header }
    }

    /// The right-most address that is no trusted proxy's: each proxy adds who spoke to it, and what stands left of an
    /// untrusted one is that one's own invention. Where a trusted proxy did not say whom it heard, it is the proxy.
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

/// Cuts a header's line into addresses; none for each that is none.
type Split = fn(&str) -> Vec<Option<IpAddr>>;

/// The addresses of `X-Forwarded-For`; none for each that is none.
fn listed(line: &str) -> Vec<Option<IpAddr>> {
    line.split(',').map(|text| address(text.trim())).collect()
}

/// The addresses of `Forwarded` (RFC 7239); none for each element that does not tell exactly one.
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

/// An address, with or without a port, an IPv6 address with a port between brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let whole = bare.parse::<IpAddr>().ok();
    let address = whole.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?;
    Some(address.to_canonical())
}

/// The text within quotes, or the text; none if a quote is where it must not be.
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

/// The parts between separators that are not within quotes.
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
