//! A valid token, sent in unaccepted ways.

use reqwest::Client;
use reqwest::header::HeaderMap;

use crate::harness::Harness;
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::LICENSES;

/// A description of the request, its headers, and its query string.
type Delivery<'a> = (&'a str, &'a [(&'static str, String)], String);

pub(super) async fn all_are_refused(http: &Client, harness: &Harness, good: &str) {
    let bearer = format!("Bearer {good}");
    let ways: [Delivery<'_>; _] = [
        ("nothing", &[], String::new()),
        ("no scheme", &[("authorization", good.into())], String::new()),
        ("another scheme", &[("authorization", format!("Basic {good}"))], String::new()),
        ("a longer scheme", &[("authorization", format!("BearerX {good}"))], String::new()),
        ("nothing between", &[("authorization", format!("Bearer{good}"))], String::new()),
        ("a colon between", &[("authorization", format!("Bearer:{good}"))], String::new()),
        ("a colon and a space between", &[("authorization", format!("Bearer: {good}"))], String::new()),
        ("a tab between", &[("authorization", format!("Bearer\t{good}"))], String::new()),
        ("an equals sign between", &[("authorization", format!("Bearer ={good}"))], String::new()),
        ("in quotes", &[("authorization", format!("Bearer \"{good}\""))], String::new()),
        ("another scheme behind", &[("authorization", format!("{bearer}, Basic eDp4"))], String::new()),
        ("another scheme before", &[("authorization", format!("Basic eDp4, {bearer}"))], String::new()),
        ("twice", &[("authorization", bearer.clone()), ("authorization", bearer.clone())], String::new()),
        (
            "with nothing before",
            &[("authorization", String::new()), ("authorization", bearer.clone())],
            String::new(),
        ),
        (
            "with a worse one behind",
            &[("authorization", bearer.clone()), ("authorization", "Bearer x".into())],
            String::new(),
        ),
        (
            "with a worse one before",
            &[("authorization", "Bearer x".into()), ("authorization", bearer.clone())],
            String::new(),
        ),
        ("for a proxy", &[("proxy-authorization", bearer.clone())], String::new()),
        ("by another name", &[("x-authorization", bearer.clone())], String::new()),
        ("as forwarded", &[("x-forwarded-authorization", bearer.clone())], String::new()),
        ("as a cookie", &[("cookie", format!("access_token={good}; token={good}"))], String::new()),
        ("in the query", &[], format!("?access_token={good}")),
        ("in the query by another name", &[], format!("?token={good}&authorization={good}")),
    ];
    for (what, headers, query) in ways {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.append(*name, value.parse().expect("a header"));
        }
        let url = format!("{}{LICENSES}{query}", harness.url());
        let answer = exchange(http.get(url).headers(sent)).await;
        assert_problem(&answer, 401, what);
    }
}
