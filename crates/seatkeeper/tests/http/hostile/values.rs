//! Invalid values for each field.

use serde_json::{Value, json};

/// Returns values that are invalid for a field of any operation.
pub(super) fn wrong(field: &str) -> Vec<Value> {
    match field {
        "tenant" | "license_key" | "machine_id" | "instance_id" | "contact" | "user" | "device_id"
        | "device_name" => [no_text(), bad_names()].concat(),
        "device_type" => {
            [no_text(), texts(&["", "TV", "fridge", "tv ", "tv\u{0}"]), vec![json!({ "tv": null })]].concat()
        }
        "session_id" | "replace_session_id" => [no_text(), bad_ids()].concat(),
        "user_agent" => [no_text(), controls(), vec![json!("x".repeat(501))]].concat(),
        "max_seats" => [no_number(), vec![json!(1_000_001), json!(-1)]].concat(),
        "grace_seconds" => [no_number(), vec![json!(604_801), json!(-1)]].concat(),
        "idle_seconds" | "offline_seconds" => [no_number(), vec![json!(31_536_001), json!(-1)]].concat(),
        "reacquire" => {
            [no_text(), texts(&["", "Never", "expired-only", "never "]), vec![json!({ "never": null })]]
                .concat()
        }
        "client" => {
            let arrays = vec![
                json!(["cad"]),
                json!(["cad", "7", "sdk"]),
                json!({ "name": 1 }),
                json!({ "version": "7" }),
            ];
            [vec![json!(1), json!(true), json!("cad"), json!([]), json!({})], arrays].concat()
        }
        "ttl_seconds" => [no_number(), vec![json!(0), json!(1), json!(2_592_001), json!(-60)]].concat(),
        "name" | "plan" => {
            [no_text(), bad_names(), texts(&["Basic", "a b", "a/b", "bäsic", ".", "x\u{0}"])].concat()
        }
        "device_limit" => [no_number(), vec![json!(1_001), json!(-1)]].concat(),
        "price_cents" => [no_number(), vec![json!(1_000_000_001), json!(-1)]].concat(),
        "when_full" => {
            [no_text(), texts(&["", "Evict", "deny ", "allow"]), vec![json!({ "evict": null })]].concat()
        }
        "expires_at" | "starts_at" | "ends_at" => {
            [vec![json!(1_900_000_000)], no_text(), bad_dates()].concat()
        }
        "count_per" => {
            [no_text(), texts(&["", "Machine", "machines", "machine\u{0}"]), vec![json!({ "user": null })]]
                .concat()
        }
        "clients" => {
            [no_text(), texts(&["", "Token", "keys", "token "]), vec![json!({ "key": null })]].concat()
        }
        "status" => {
            [no_text(), texts(&["", "ACTIVE", "expired", "active "]), vec![json!({ "revoked": null })]]
                .concat()
        }
        "release_code" => [no_text(), vec![json!("x".repeat(601)), json!("x".repeat(50_000))]].concat(),
        "metadata" => bad_objects(),
        "userObjectId" | "tenantObjectId" | "capacityId" => [no_text(), bad_ids(), nil_ids()].concat(),
        "sessionKind" => {
            [no_number(), [0, 4, 9, 255, 256, 257, -1].map(|kind| json!(kind)).to_vec()].concat()
        }
        unknown => panic!("no wrong values are known for {unknown}"),
    }
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

fn no_text() -> Vec<Value> {
    vec![json!(1), json!(-1.5), json!(true), json!([]), json!(["x"]), json!({}), json!({ "x": null })]
}

fn no_number() -> Vec<Value> {
    vec![
        json!("3"),
        json!(""),
        json!(true),
        json!([]),
        json!([3]),
        json!({}),
        json!(1.5),
        json!(3.0),
        json!(1e30),
        json!(-1e30),
        json!(u64::from(u32::MAX) + 1),
        json!(u64::MAX),
        json!(i64::MIN),
    ]
}

fn nil_ids() -> Vec<Value> {
    texts(&[
        "00000000-0000-0000-0000-000000000000",
        "00000000000000000000000000000000",
        "{00000000-0000-0000-0000-000000000000}",
    ])
}

fn bad_ids() -> Vec<Value> {
    let long = format!("{}00", "00".repeat(30_000));
    texts(&[
        "",
        "x",
        "ann",
        "0193d2f4-0007-8000-8abc-0123456789a",
        "0193d2f4-0007-8000-8abc-0123456789abc",
        "0193d2f4-0007-8000-8abc-0123456789ag",
        " 0193d2f4-0007-8000-8abc-0123456789ab",
        "0193d2f4-0007-8000-8abc-0123456789ab\u{0}",
        "0193d2f4-0007-8000-8abc-0123456789ab/x",
        "０１９３d2f4-0007-8000-8abc-0123456789ab",
        &long,
    ])
}

fn controls() -> Vec<Value> {
    texts(&["\u{0}", "a\u{0}b", "a\nb", "\r\n", "\t", "\u{7f}", "\u{85}", "\u{1b}[31m"])
}

fn bad_names() -> Vec<Value> {
    let long = [json!(""), json!("x".repeat(256)), json!("ü".repeat(256)), json!("x".repeat(50_000))];
    [controls(), long.to_vec()].concat()
}

fn bad_dates() -> Vec<Value> {
    texts(&[
        "",
        "yesterday",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00+99:00",
        "1969-12-31T23:59:59Z",
        "-0001-01-01T00:00:00Z",
        "+10000-01-01T00:00:00Z",
        "+262142-12-31T23:59:59Z",
        "99999999999-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\u{0}",
    ])
}

fn bad_objects() -> Vec<Value> {
    vec![
        json!(1),
        json!(true),
        json!("x"),
        json!([]),
        json!([["a", 1]]),
        json!({ "long": "x".repeat(4_096) }),
        json!({ "x".repeat(4_096): 1 }),
        json!({ "nul": "\u{0}" }),
        json!({ "\u{0}": "nul" }),
        json!({ "deep": [{ "nul": "a\u{0}b" }] }),
    ]
}
