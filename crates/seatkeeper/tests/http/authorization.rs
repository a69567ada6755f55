//! Authorization: every operation in the API description has a line in the table of permissions, and behaves
//! as the line says.

mod subject;
mod table;

use std::collections::BTreeSet;

use crate::harness::Answer;
use crate::http::books::Books;
use crate::http::exchange::{assert_problem, comparable};
use crate::http::tenant_client::TenantClient;
use subject::Subject;
use table::{LINES, Line, OtherUser, Requirement};

#[tokio::test]
async fn every_operation_of_the_description_has_a_line_and_every_line_an_operation() {
    let api = TenantClient::open();
    let described = operations(&api).await;
    let listed: BTreeSet<_> = LINES.iter().map(|line| line.operation.to_owned()).collect();
    let unguarded: Vec<_> = described.difference(&listed).collect();
    assert!(unguarded.is_empty(), "without a line in the authorization table: {unguarded:?}");
    let gone: Vec<_> = listed.difference(&described).collect();
    assert!(gone.is_empty(), "in the authorization table, but not in the description: {gone:?}");
}

#[tokio::test]
async fn the_description_says_which_operations_need_a_token() {
    let description = TenantClient::open().user("ann").get("/openapi.json").await.expect(200);
    for line in LINES {
        let (method, path) = line.operation.split_once(' ').unwrap();
        let needs_token = description["paths"][path][method].get("security").is_some();
        assert_eq!(needs_token, line.needs != Requirement::Nothing, "{}", line.operation);
    }
}

#[tokio::test]
async fn the_description_has_every_status_of_the_table() {
    let description = TenantClient::open().user("ann").get("/openapi.json").await.expect(200);
    for line in LINES {
        let (method, path) = line.operation.split_once(' ').unwrap();
        let described = &description["paths"][path][method]["responses"];
        let guarded: &[u16] = match line.needs {
            Requirement::Nothing => &[],
            Requirement::Token => &[401, 500, 503],
            Requirement::Admin => &[401, 403, 500, 503],
        };
        for status in [line.allowed, line.to_others].iter().chain(guarded) {
            assert!(described.get(status.to_string()).is_some(), "{}: {status}", line.operation);
        }
    }
}

#[tokio::test]
async fn whoever_may_do_it_can() {
    let api = TenantClient::open();
    for line in LINES {
        let subject = Subject::new(&api).await;
        let answer = subject.ask(line, Some(&api.token("ann", line.scopes()))).await;
        assert_eq!(answer.status, line.allowed, "{}: {:#}", line.operation, answer.body);
    }
}

#[tokio::test]
async fn without_a_token_nothing_is_told_and_nothing_changes() {
    let api = TenantClient::open();
    let subject = Subject::new(&api).await;
    let before = Books::new(&api).await;
    for line in LINES.iter().filter(|line| line.needs != Requirement::Nothing) {
        for token in [None, Some(""), Some("no.such.token")] {
            let answer = subject.ask(line, token).await;
            assert_problem(&answer, 401, line.operation);
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{}", line.operation);
            looks_the_same_as_nothing(&subject, line, token, &answer).await;
        }
    }
    assert_eq!(Books::new(&api).await, before);
}

#[tokio::test]
async fn who_asks_is_looked_at_before_what_is_asked() {
    let api = TenantClient::open();
    let wrong = Subject::malformed(&api);
    for line in LINES.iter().filter(|line| line.needs != Requirement::Nothing) {
        let nobody = wrong.ask(line, None).await;
        assert_problem(&nobody, 401, line.operation);
        if line.needs == Requirement::Admin {
            let user = wrong.ask(line, Some(&api.token("ann", ""))).await;
            assert_problem(&user, 403, line.operation);
        }
    }
}

#[tokio::test]
async fn to_another_tenant_what_is_there_and_what_is_not_look_the_same_and_nothing_changes() {
    let api = TenantClient::open();
    let stranger = api.neighbour();
    let subject = Subject::new(&api).await;
    let before = Books::new(&api).await;
    for line in LINES.iter().filter(|line| line.needs != Requirement::Nothing) {
        // The user and the scopes match, so that only the tenant differs.
        for scopes in [line.scopes(), "admin service"] {
            let token = stranger.token("ann", scopes);
            let real = subject.ask(line, Some(&token)).await;
            assert_eq!(real.status, line.to_others, "{}: {:#}", line.operation, real.body);
            if line.changes_by_itself {
                continue;
            }
            looks_the_same_as_nothing(&subject, line, Some(&token), &real).await;
        }
    }
    assert_eq!(Books::new(&api).await, before);
}

#[tokio::test]
async fn without_the_admin_scope_the_admin_api_refuses_and_nothing_changes() {
    let api = TenantClient::open();
    let subject = Subject::new(&api).await;
    let before = Books::new(&api).await;
    for line in LINES.iter().filter(|line| line.needs == Requirement::Admin) {
        for scopes in ["", "service", "administrator ADMIN admin,service"] {
            let token = api.token("ann", scopes);
            let answer = subject.ask(line, Some(&token)).await;
            assert_problem(&answer, 403, line.operation);
            assert_eq!(answer.body["type"], "/problems/admin-scope-required", "{}", line.operation);
            looks_the_same_as_nothing(&subject, line, Some(&token), &answer).await;
        }
    }
    assert_eq!(Books::new(&api).await, before);
}

#[tokio::test]
async fn a_license_token_finds_no_session_but_its_own_and_nothing_else_and_changes_nothing() {
    /// The operations on sessions that take a license token.
    const SEATS: [&str; 5] = [
        "patch /api/v1/licenses/sessions/{session_id}/heartbeat",
        "put /api/v1/licenses/sessions/{session_id}/heartbeat",
        "get /api/v1/licenses/sessions/{session_id}",
        "delete /api/v1/licenses/sessions/{session_id}",
        "get /api/v1/licenses/sessions/{session_id}/events",
    ];
    let api = TenantClient::open();
    let subject = Subject::new(&api).await;
    let before = Books::new(&api).await;
    let line = LINES.iter().find(|line| line.operation == "post /api/v1/licenses/token").unwrap();
    let token = subject.ask(line, None).await.expect(200)["token"].as_str().unwrap().to_owned();
    // An acquire would resume the seat of the machine, which the token is good for.
    let acquire = "post /api/v1/licenses/acquire";
    for line in LINES.iter().filter(|line| line.needs != Requirement::Nothing && line.operation != acquire) {
        let status = if SEATS.contains(&line.operation) { 404 } else { 401 };
        let real = subject.ask(line, Some(&token)).await;
        assert_problem(&real, status, line.operation);
        looks_the_same_as_nothing(&subject, line, Some(&token), &real).await;
    }
    let after = Books::new(&api).await;
    assert_eq!(after, before);
}

#[tokio::test]
async fn to_another_user_someones_session_and_none_look_the_same_and_nothing_changes() {
    let api = TenantClient::open();
    let subject = Subject::new(&api).await;
    let before = Books::new(&api).await;
    for line in LINES.iter().filter(|line| line.other_user == OtherUser::Missing) {
        let token = api.token("bob", "");
        let real = subject.ask(line, Some(&token)).await;
        assert_problem(&real, 404, line.operation);
        looks_the_same_as_nothing(&subject, line, Some(&token), &real).await;
        // The owner gets an identical answer for a session that does not exist.
        let [random, _] = subject.missing();
        let owner = random.ask(line, Some(&api.token("ann", ""))).await;
        assert_eq!(comparable(&owner), comparable(&real), "{}", line.operation);
    }
    assert_eq!(Books::new(&api).await, before);
}

/// Repeats a request with random ids, and with ids next to the real ids. Except for request id and date,
/// every answer must equal `real` byte for byte.
async fn looks_the_same_as_nothing(subject: &Subject<'_>, line: &Line, token: Option<&str>, real: &Answer) {
    for missing in subject.missing() {
        let missing = missing.ask(line, token).await;
        assert_eq!(comparable(&missing), comparable(real), "{}", line.operation);
    }
}

/// Returns `method /path` of every operation in the API description.
async fn operations(api: &TenantClient) -> BTreeSet<String> {
    let description = api.user("ann").get("/openapi.json").await.expect(200);
    let paths = description["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &serde_json::Value)| {
        let methods: Vec<_> =
            item.as_object().unwrap().keys().map(|method| format!("{method} {path}")).collect();
        methods
    };
    paths.iter().flat_map(of_path).collect()
}

impl Line {
    fn scopes(&self) -> &'static str {
        match self.needs {
            Requirement::Nothing | Requirement::Token => "",
            Requirement::Admin => "admin",
        }
    }
}
