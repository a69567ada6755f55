//! The table of permissions. A new operation needs a line in `LINES`; a test fails and names the operation
//! otherwise.

/// The authorization that an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    Nothing,
    Token,
    Admin,
}

/// The answer to another user of the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherUser {
    /// The answer is identical to the answer for a missing session.
    Missing,
    /// Not applicable: the operation is not about a user's session.
    NotAsked,
}

/// The session of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    License,
    Device,
    /// A device session that has ended, with the end already seen by the client.
    EndedDevice,
    Capacity,
    /// A session of a license that has ended, with the end already seen by the client.
    EndedLicense,
    /// A session of a capacity that has ended, with the end already seen by the client.
    EndedCapacity,
}

/// An operation, with the expected answers.
pub(super) struct Line {
    /// Method and path, as in the API description.
    pub(super) operation: &'static str,
    /// Query string. Names in braces are placeholders for ids of the subject, as in the path.
    pub(super) query: &'static str,
    /// Body, or empty.
    pub(super) body: &'static str,
    pub(super) of: Of,
    pub(super) needs: Requirement,
    /// Status for an authorized caller.
    pub(super) allowed: u16,
    /// Status for another tenant.
    pub(super) to_others: u16,
    pub(super) other_user: OtherUser,
    /// True if the server's own activity changes the answer, so that two answers are not comparable.
    pub(super) changes_by_itself: bool,
}

const USER: Line = Line {
    operation: "",
    query: "",
    body: "",
    of: Of::License,
    needs: Requirement::Token,
    allowed: 200,
    to_others: 404,
    other_user: OtherUser::NotAsked,
    changes_by_itself: false,
};

const OWNER: Line = Line { other_user: OtherUser::Missing, ..USER };

const ADMIN: Line = Line { needs: Requirement::Admin, ..USER };

const OPEN: Line = Line { needs: Requirement::Nothing, to_others: 200, ..USER };

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
    Line {
        operation: "get /api/v1/licenses/sessions/{session_id}/events",
        of: Of::EndedLicense,
        allowed: 204,
        ..OWNER
    },
    Line {
        operation: "get /api/v1/capacities/sessions/{session_id}/events",
        of: Of::EndedCapacity,
        allowed: 204,
        ..OWNER
    },
    Line {
        operation: "post /api/v1/licenses/sessions/release",
        body: r#"{"session_id":"{session_id}","release_code":"x"}"#,
        allowed: 204,
        to_others: 204,
        ..OPEN
    },
    Line {
        operation: "post /api/v1/devices/sessions/release",
        body: r#"{"session_id":"{session_id}","release_code":"x"}"#,
        of: Of::Device,
        allowed: 204,
        to_others: 204,
        ..OPEN
    },
    Line { operation: "get /api/v1/licenses/{license_id}/sessions", ..USER },
    Line {
        operation: "post /api/v1/devices/sessions",
        body: r#"{"device_id":"tv","device_type":9}"#,
        // A caller's screens are private, so the answer reveals nothing: the request is refused because of
        // the type.
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
    // Groups are off here: the request is refused because of the type, or finds no member. The tests of groups have real
    // members and other users.
    Line {
        operation: "post /api/v1/devices/groups",
        body: r#"{"session_id":"{session_id}","device_id":"tv","device_type":9}"#,
        of: Of::Device,
        allowed: 422,
        to_others: 422,
        ..USER
    },
    Line {
        operation: "post /api/v1/devices/groups/join",
        body: r#"{"join_code":"x","device_id":"tv","device_type":9}"#,
        of: Of::Device,
        allowed: 422,
        to_others: 422,
        ..USER
    },
    Line {
        operation: "post /api/v1/devices/groups/heartbeat",
        body: r#"{"session_id":"{session_id}"}"#,
        of: Of::Device,
        allowed: 404,
        ..USER
    },
    Line { operation: "get /api/v1/devices/groups/{session_id}", of: Of::Device, allowed: 404, ..USER },
    Line {
        operation: "get /api/v1/devices/groups/{session_id}/events",
        of: Of::Device,
        allowed: 404,
        ..USER
    },
    Line {
        operation: "post /api/v1/devices/groups/leave",
        body: r#"{"group_id":"{session_id}","session_id":"{session_id}"}"#,
        of: Of::Device,
        allowed: 404,
        ..USER
    },
    Line { operation: "delete /api/v1/devices/sessions/{session_id}", of: Of::Device, allowed: 204, ..OWNER },
    Line {
        operation: "put /api/v1/capacities/sessions",
        body: r#"{"userObjectId":"{user_object_id}","tenantObjectId":"{tenant}","capacityId":"{capacity_id}","sessionKind":9}"#,
        // A service may take capacities in any tenant, so the request is refused because of the tier.
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
        // License keys are private to a tenant, so the answer reveals nothing: the request is refused because
        // of the seats.
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
        // Plan names are private to a tenant, so the answer reveals nothing: the request is refused because
        // of the limit.
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
    // Without a sink, no batch exists. The tests in `admin/usage.rs` send real batches.
    Line { operation: "post /api/v1/admin/usage/batches/{batch_id}/send", allowed: 404, ..ADMIN },
    Line { operation: "post /api/v1/admin/usage/batches/send", to_others: 200, ..ADMIN },
    // Jobs belong to the server rather than to a tenant: any admin may see and run jobs.
    // A server without regions has no region to move a home to.
    Line {
        operation: "post /api/v1/admin/homes/moves",
        body: r#"{"user":"ann","to":"us"}"#,
        allowed: 422,
        to_others: 422,
        ..ADMIN
    },
    Line { operation: "get /api/v1/admin/regions", to_others: 200, ..ADMIN },
    Line { operation: "get /api/v1/admin/jobs", to_others: 200, changes_by_itself: true, ..ADMIN },
    Line { operation: "get /api/v1/admin/jobs/{job}/runs", query: "?cursor=0", to_others: 200, ..ADMIN },
    Line { operation: "post /api/v1/admin/jobs/{job}/run", allowed: 202, to_others: 202, ..ADMIN },
    Line { operation: "get /healthz", ..OPEN },
    Line { operation: "get /readyz", ..OPEN },
    Line { operation: "get /health/redis", changes_by_itself: true, ..OPEN },
    Line { operation: "get /health/ledger", changes_by_itself: true, ..OPEN },
];
