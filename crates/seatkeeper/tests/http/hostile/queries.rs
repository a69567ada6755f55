//! Query strings with one wrong parameter, which the response names.

use super::Siege;
use crate::http::exchange::assert_field;
use crate::http::tenant_client::{
    AUDIT, CAPACITIES, DEVICES, JOBS, LICENSES, PLANS, RECONCILIATION, SESSIONS, SUBSCRIPTIONS, USAGE,
    USAGE_BATCHES, sessions_path, text,
};

const WRONG_LIMITS: [&str; 9] =
    ["0", "501", "-1", "1.5", "", "x", "%00", "4294967296", "99999999999999999999999999"];

#[tokio::test]
async fn a_parameter_that_is_wrong_is_named() {
    let siege = Siege::begin().await;
    let admin = siege.api.admin();
    let long = "9".repeat(5_000);
    let runs = format!("{JOBS}/session_expiry/runs");
    for (path, parameter, values) in [
        (LICENSES, "status", &["x", "Active", "", "active%00"][..]),
        (LICENSES, "cursor", &["x", "", "1", "%00", "%FF", &long]),
        (DEVICES, "session_id", &["x", "", "1", "%00", "%FF", &long]),
        (PLANS, "status", &["x", "Active", "", "cancelled", "active%00"]),
        (PLANS, "cursor", &["Basic", "", "a%20b", "%00", "%FF", &long]),
        (SUBSCRIPTIONS, "status", &["x", "Active", "", "retired", "active%00"]),
        (SUBSCRIPTIONS, "plan", &["Basic", "", "a%20b", "%00", "%FF", &long]),
        (SUBSCRIPTIONS, "user", &["%00", "ann%00"]),
        (SUBSCRIPTIONS, "cursor", &["x", "", "1", "%00", "%FF", &long]),
        (SESSIONS, "pool_kind", &["x", "License", ""]),
        (SESSIONS, "pool", &["%00"]),
        (SESSIONS, "holder", &["%00"]),
        (SESSIONS, "user", &["%00", "ann%00"]),
        (SESSIONS, "ip", &["x", "", "127.0.0.1.1", "256.0.0.1", "127.0.0.1:80", "::g"]),
        (SESSIONS, "live", &["x", "1", "TRUE", ""]),
        (SESSIONS, "cursor", &["x", "", "1", "00000000-0000-0000-0000-000000000000"]),
        (AUDIT, "action", &["x", "", "Admitted", "admitted%00"]),
        (AUDIT, "pool", &["%00"]),
        (AUDIT, "session", &["x", "", "1"]),
        (AUDIT, "from", &["x", "", "2026-01-01", "2026-13-01T00:00:00Z", "1e9", &long]),
        (AUDIT, "to", &["x", "2026-02-30T00:00:00Z", "99999999999-01-01T00:00:00Z"]),
        (AUDIT, "cursor", &["x", "", "-1", "1.5", "99999999999999999999", "%00"]),
        (AUDIT, "format", &["xml", "", "CSV"]),
        (USAGE, "from", &["x", "", "2026-01-01", &long]),
        (USAGE, "to", &["x", "", "1969-12-31T00:00:00Z"]),
        (USAGE, "cursor", &["x", "", "1", "%00", &long]),
        (USAGE_BATCHES, "state", &["x", "", "Dead", "dead%00"]),
        (USAGE_BATCHES, "cursor", &["x", "", "1", "1.", ".1", "-1.1", "1.1.1", "%FF", &long]),
        (RECONCILIATION, "from", &["x", "", "2026-02-30T00:00:00Z"]),
        (RECONCILIATION, "to", &["2020-01-01T00:00:00Z&from=2020-01-01T00:00:00Z"]),
        (&runs, "cursor", &["x", "", "-1", "1.5", "99999999999999999999", "%00", &long]),
    ] {
        for value in values {
            let query = format!("{path}?{parameter}={value}");
            assert_field(&admin.get(&query).await, parameter, &query);
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_page_has_1_to_500_items() {
    let siege = Siege::begin().await;
    let of_license = sessions_path(&siege.license);
    let of_job = format!("{JOBS}/session_expiry/runs");
    for path in [LICENSES, PLANS, SUBSCRIPTIONS, SESSIONS, AUDIT, USAGE, USAGE_BATCHES, &of_license, &of_job]
    {
        for limit in WRONG_LIMITS {
            let query = format!("{path}?limit={limit}");
            assert_field(&siege.api.admin().get(&query).await, "limit", &query);
        }
        for limit in [1, 500] {
            siege.api.admin().get(&format!("{path}?limit={limit}")).await.expect(200);
        }
    }
    let cursor = format!("{of_license}?cursor=x");
    assert_field(&siege.api.admin().get(&cursor).await, "cursor", &cursor);
    siege.withstood().await;
}

#[tokio::test]
async fn a_parameter_that_is_there_twice_or_missing_is_named() {
    let siege = Siege::begin().await;
    let admin = siege.api.admin();
    let runs = format!("{JOBS}/session_expiry/runs");
    for (path, parameter) in [
        (LICENSES, "limit"),
        (SESSIONS, "user"),
        (SUBSCRIPTIONS, "user"),
        (AUDIT, "pool"),
        (USAGE, "cursor"),
        (DEVICES, "session_id"),
        (&runs, "cursor"),
    ] {
        let query = format!("{path}?{parameter}=1&{parameter}=2");
        assert_field(&admin.get(&query).await, parameter, &query);
    }
    let alone = format!("{SESSIONS}?user_tenant=x");
    assert_field(&admin.get(&alone).await, "user", &alone);
    let pool = text(&siege.license["license_id"]);
    for (query, missing) in [
        (String::new(), "pool_kind"),
        ("?pool_kind=license".into(), "pool"),
        (format!("?pool={pool}"), "pool_kind"),
        (format!("?pool_kind=nothing&pool={pool}"), "pool_kind"),
        ("?pool_kind=license&pool=x".into(), "pool"),
        ("?pool_kind=license&pool=".into(), "pool"),
        ("?pool_kind=capacity&pool=x".into(), "pool"),
        (format!("?pool_kind=capacity&pool={pool}"), "pool"),
        (format!("?pool_kind=capacity&pool={pool}/"), "pool"),
    ] {
        assert_field(&admin.delete(&format!("{SESSIONS}{query}")).await, missing, &query);
    }
    for (query, missing) in [("", "from"), ("?from=2026-01-01T00:00:00Z", "to")] {
        assert_field(&admin.get(&format!("{RECONCILIATION}{query}")).await, missing, query);
    }
    siege.withstood().await;
}

/// A misspelt filter would find more than was asked for, and a misspelt exception would end more.
#[tokio::test]
async fn a_parameter_that_no_filter_has_is_named_and_ends_nothing() {
    let siege = Siege::begin().await;
    let admin = siege.api.admin();
    let runs = format!("{JOBS}/session_expiry/runs");
    for path in [LICENSES, PLANS, SUBSCRIPTIONS, SESSIONS, AUDIT, USAGE, USAGE_BATCHES, RECONCILIATION, &runs]
    {
        let query = format!("{path}?session_id=x");
        assert_field(&admin.get(&query).await, "session_id", &query);
    }
    let pool = text(&siege.license["license_id"]);
    for query in [format!("{SESSIONS}?pool_kind=license&pool={pool}&excpt=x"), format!("{DEVICES}?excpt=x")] {
        assert_field(&admin.delete(&query).await, "excpt", &query);
    }
    siege.withstood().await;
}

#[tokio::test]
async fn odd_parameters_find_nothing_and_harm_nothing() {
    let siege = Siege::begin().await;
    let long = "x".repeat(8_000);
    for value in ["", "%FF", "%", "%zz", "'%20OR%20''='", "%25", "*", &long] {
        for parameter in ["pool", "holder", "user"] {
            let query = format!("{SESSIONS}?{parameter}={value}");
            let found = siege.api.admin().get(&query).await.expect(200);
            assert_eq!(found["items"].as_array().unwrap().len(), 0, "{query}");
        }
        let query = format!("{SUBSCRIPTIONS}?user={value}");
        let found = siege.api.admin().get(&query).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), 0, "{query}");
        siege.api.admin().get(&format!("{AUDIT}?pool={value}&&")).await.expect(200);
    }
    for dates in [
        "from=2030-01-01T00:00:00Z&to=2020-01-01T00:00:00Z",
        "to=-0001-01-01T00:00:00Z",
        "from=%2B262142-12-31T23:59:59Z",
    ] {
        let found = siege.api.admin().get(&format!("{AUDIT}?{dates}")).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), 0, "{dates}");
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_search_for_a_capacity_names_what_is_missing_or_wrong() {
    let siege = Siege::begin().await;
    let id = "0193d2f4-0007-8000-8abc-0123456789ab";
    let right = [("userObjectId", id), ("capacityId", id), ("tenantObjectId", id)];
    let query = |parameters: &[(&str, &str)]| {
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{CAPACITIES}?{}", parameters.join("&"))
    };
    let ann = siege.api.user("ann");
    ann.get(&query(&right)).await.expect(200);
    for (at, (parameter, _)) in right.into_iter().enumerate() {
        for wrong in ["", "x", "1", "%00", "%FF", "00000000-0000-0000-0000-000000000000", "..%2F", &id[1..]] {
            let mut parameters = right;
            parameters[at].1 = wrong;
            assert_field(&ann.get(&query(&parameters)).await, parameter, wrong);
        }
        let twice = query(&[&right[..], &right[at..=at]].concat());
        assert_field(&ann.get(&twice).await, parameter, "twice");
        if parameter != "tenantObjectId" {
            let others: Vec<_> = right.into_iter().filter(|(name, _)| *name != parameter).collect();
            assert_field(&ann.get(&query(&others)).await, parameter, "missing");
        }
    }
    siege.withstood().await;
}
