//! Tests of `Origins`: normalization, matching, and texts that are no origin.

use super::{Origin, Origins};

#[test]
fn an_origin_is_compared_as_browsers_write_it() {
    for (written, sent) in [
        ("https://app.example.com", "https://app.example.com"),
        ("https://App.Example.com", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("https://127.0.0.1:8443", "https://127.0.0.1:8443"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("*", "https://anything.example"),
    ] {
        let origins: Origins = written.parse().unwrap();
        assert!(origins.allow(sent), "{written} {sent}");
        assert_eq!(origins.allow("https://other.example"), written == "*");
    }
}

#[test]
fn another_scheme_port_or_name_is_another_origin() {
    let origins: Origins = "https://app.example.com".parse().unwrap();
    for other in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com.evil.example",
        "https://evil.example/https://app.example.com",
        "https://sub.app.example.com",
        "https://example.com",
        "null",
        "",
    ] {
        assert!(!origins.allow(other), "{other}");
    }
}

#[test]
fn a_text_that_is_no_origin_is_named() {
    for wrong in [
        "app.example.com",
        "https://app.example.com/",
        "https://app.example.com/path",
        "https://app.example.com?query",
        "https://user@app.example.com",
        "https://app.example.com:",
        "https://app.example.com:99999",
        "https://*.example.com",
        "https://",
        "://app.example.com",
        "1https://app.example.com",
        "https://app.exa mple.com",
        "https://bücher.example",
        "https://[::1",
        "https://[::x]",
        "null",
        "**",
    ] {
        assert!(wrong.parse::<Origin>().unwrap_err().to_string().contains(wrong), "{wrong}");
    }
}

#[test]
fn a_list_is_written_with_commas() {
    let origins: Origins = "https://a.example, https://b.example,".parse().unwrap();
    assert!(origins.allow("https://a.example") && origins.allow("https://b.example"));
    assert!("".parse::<Origins>().unwrap().is_empty());
}
