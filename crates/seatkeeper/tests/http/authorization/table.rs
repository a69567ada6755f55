//! The table. A new operation needs a line here, or a test fails that names it.

/// What a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Token,
    Admin,
}

/// What another user of the same tenant finds at a session's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherUser {
    /// The same as where no session is.
    Missing,
    /// The operation is not about one user's session.
    NotAsked,
}

/// Which session the operation is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    License,
    Device,
    /// One that has ended, and whose end was heard.
    EndedDevice,
    Capacity,
}

/// One operation, and how it is asked for.
pub(super) struct Line {
    /// Method and path, as the description has them.
    pub(super) operation: &'static str,
    /// A query string; names in braces stand for what a test asks about, as they do in the path.
    pub(super) query: &'static str,
    /// A body, or nothing.
    pub(super) body: &'static str,
    pub(super) of: Of,
    pub(super) needs: Needs,
    /// The status for who may.
    pub(super) allowed: u16,
    /// The status for another tenant.
    pub(super) to_others: u16,
    pub(super) other_user: OtherUser,
    /// Whether the server's own work changes the answer, so that two of them cannot be compared.
    pub(super) changes_by_itself: bool,
}

const USER: Line = Line {
    operation: "",
    query: "",
    body: "",
    of: Of::License,
    needs: Needs::Token,
    allowed: 200,
    to_others: 404,
    other_user: OtherUser::NotAsked,
    changes_by_itself: false,
};

const OWNER: Line = Line { other_user: OtherUser::Missing, ..USER };

const ADMIN: Line = Line { needs: Needs::Admin, ..USER };

const OPEN: Line = Line { needs: Needs::Nothing, to_others: 200, ..USER };

pub(super) const LINES: &[Line] = &[
    Line {
        operation: "post /api/v1/licenses/acquire",
        body: r#"{"license_key":"{license_key}","machine_id":"laptop-1"}"#,
        ..USER
    },
    Line {
        operation: "post /api/v1/licenses/token",
        body: r#"{"tenant":"{tenant}","license_key":"{license_key}","machine_id":"laptop-1"}"#,
        ..OPEN
    },
    Line { operation: "patch /api/v1/licenses/sessions/{session_id}/heartbeat", ..OWNER },
    Line { operation: "put /api/v1/licenses/sessions/{session_id}/heartbeat", ..OWNER },
    Line { operation: "get /api/v1/licenses/sessions/{session_id}", ..OWNER },
    Line { operation: "delete /api/v1/licenses/sessions/{session_id}", allowed: 204, ..OWNER },
    Line { operation: "get /api/v1/licenses/{license_id}/sessions", ..USER },
    Line {
        operation: "post /api/v1/devices/sessions",
        body: r#"{"device_id":"tv","device_type":9}"#,
        // Each caller's screens are its own, so there is nothing to find out: the request is refused for its type.
        of: Of::Device,
        allowed: 422,
        to_others: 422,
        ..USER
    },
    Line {
        operation: "post /api/v1/devices/sessions/heartbeat",
        body: r#"{"session_id":"{session_id}"}"#,
        of: Of::Device,
        allowed: 204,
        ..OWNER
    },
    Line {
        operation: "get /api/v1/devices/sessions",
        query: "?session_id={session_id}",
        of: Of::Device,
        to_others: 200,
        ..USER
    },
    Line {
        operation: "delete /api/v1/devices/sessions",
        query: "?except={session_id}",
        of: Of::Device,
        allowed: 204,
        ..OWNER
    },
    Line {
        operation: "get /api/v1/devices/sessions/{session_id}/events",
        of: Of::EndedDevice,
        allowed: 204,
        ..OWNER
    },
    Line { operation: "delete /api/v1/devices/sessions/{session_id}", of: Of::Device, allowed: 204, ..OWNER },
    Line {
        operation: "put /api/v1/capacities/sessions",
        body: r#"{"userObjectId":"{user_object_id}","tenantObjectId":"{tenant}","capacityId":"{capacity_id}","sessionKind":9}"#,
        // A service may take capacities anywhere, so the request is refused for its tier.
        allowed: 422,
        to_others: 422,
        ..USER
    },
    Line {
        operation: "get /api/v1/capacities/sessions",
        query: "?userObjectId={user_object_id}&capacityId={capacity_id}&tenantObjectId={tenant}",
        to_others: 200,
        ..USER
    },
    Line { operation: "get /api/v1/capacities/sessions/{session_id}", of: Of::Capacity, ..OWNER },
    Line {
        operation: "delete /api/v1/capacities/sessions/{session_id}",
        of: Of::Capacity,
        allowed: 204,
        ..OWNER
    },
    Line { operation: "get /api/v1/admin/licenses", query: "?cursor={license_id}", to_others: 200, ..ADMIN },
    Line {
        operation: "post /api/v1/admin/licenses",
        body: r#"{"license_key":"{license_key}","max_seats":-1}"#,
        // Keys are each tenant's own, so there is nothing to find out: the request is refused for its seats.
        allowed: 422,
        to_others: 422,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/licenses/{license_id}", ..ADMIN },
    Line { operation: "patch /api/v1/admin/licenses/{license_id}", body: r#"{"max_seats":9}"#, ..ADMIN },
    Line { operation: "delete /api/v1/admin/licenses/{license_id}", allowed: 204, ..ADMIN },
    Line { operation: "get /api/v1/admin/plans", query: "?cursor={plan}", to_others: 200, ..ADMIN },
    Line {
        operation: "post /api/v1/admin/plans",
        body: r#"{"name":"{plan}","device_limit":-1}"#,
        // Names are each tenant's own, so there is nothing to find out: the request is refused for its limit.
        allowed: 422,
        to_others: 422,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/plans/{plan}", ..ADMIN },
    Line { operation: "patch /api/v1/admin/plans/{plan}", body: r#"{"device_limit":9}"#, ..ADMIN },
    Line { operation: "delete /api/v1/admin/plans/{plan}", allowed: 204, ..ADMIN },
    Line {
        operation: "get /api/v1/admin/subscriptions",
        query: "?plan={plan}&cursor={subscription_id}",
        to_others: 200,
        ..ADMIN
    },
    Line {
        operation: "post /api/v1/admin/subscriptions",
        body: r#"{"user":"zoe","plan":"{plan}"}"#,
        allowed: 201,
        to_others: 422,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/subscriptions/{subscription_id}", ..ADMIN },
    Line {
        operation: "patch /api/v1/admin/subscriptions/{subscription_id}",
        body: r#"{"ends_at":"2099-01-01T00:00:00Z"}"#,
        ..ADMIN
    },
    Line { operation: "delete /api/v1/admin/subscriptions/{subscription_id}", allowed: 204, ..ADMIN },
    Line {
        operation: "get /api/v1/admin/sessions",
        query: "?pool_kind=license&pool={license_id}&cursor={later_session_id}",
        to_others: 200,
        ..ADMIN
    },
    Line {
        operation: "delete /api/v1/admin/sessions",
        query: "?pool_kind=license&pool={license_id}",
        to_others: 200,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/sessions/{session_id}", ..ADMIN },
    Line { operation: "delete /api/v1/admin/sessions/{session_id}", allowed: 204, ..ADMIN },
    Line {
        operation: "get /api/v1/admin/audit",
        query: "?pool={license_id}&session={session_id}",
        to_others: 200,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/usage", to_others: 200, ..ADMIN },
    Line { operation: "get /api/v1/admin/usage/batches", query: "?state=dead", to_others: 200, ..ADMIN },
    Line {
        operation: "get /api/v1/admin/usage/reconciliation",
        query: "?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z",
        to_others: 200,
        ..ADMIN
    },
    // There is no sink here, hence no batch; `admin/usage.rs` asks for real ones.
    Line { operation: "post /api/v1/admin/usage/batches/{batch_id}/send", allowed: 404, ..ADMIN },
    // Jobs are the server's, and no tenant's: any admin may see and run them.
    Line { operation: "get /api/v1/admin/jobs", to_others: 200, changes_by_itself: true, ..ADMIN },
    Line { operation: "get /api/v1/admin/jobs/{job}/runs", query: "?cursor=0", to_others: 200, ..ADMIN },
    Line { operation: "post /api/v1/admin/jobs/{job}/run", allowed: 202, to_others: 202, ..ADMIN },
    Line { operation: "get /healthz", ..OPEN },
    Line { operation: "get /readyz", ..OPEN },
    Line { operation: "get /health/redis", changes_by_itself: true, ..OPEN },
    Line { operation: "get /health/ledger", changes_by_itself: true, ..OPEN },
];
