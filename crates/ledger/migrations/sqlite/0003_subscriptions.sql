-- Plans and subscriptions: what gives a subscriber's pool its limit.

-- Numbers the changes of a tenant's plans and subscriptions, in the order of their commits.
ALTER TABLE tenants ADD COLUMN entitlement_version INTEGER NOT NULL DEFAULT 0 CHECK (entitlement_version >= 0);

-- Never deleted. Version 0: as it was made with its tenant.
CREATE TABLE plans (
    tenant_id    TEXT    NOT NULL REFERENCES tenants (id),
    name         TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    device_limit INTEGER NOT NULL CHECK (device_limit BETWEEN 0 AND 4294967295),
    price_cents  INTEGER NOT NULL CHECK (price_cents BETWEEN 0 AND 4294967295),
    when_full    TEXT    NOT NULL CHECK (when_full IN ('evict', 'deny')),
    ttl_seconds  INTEGER CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    status       TEXT    NOT NULL CHECK (status IN ('active', 'retired')),
    version      INTEGER NOT NULL CHECK (version >= 0),
    created_at   TEXT    NOT NULL,
    updated_at   TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;

-- Every tenant has these from its beginning.
CREATE TRIGGER tenants_have_plans AFTER INSERT ON tenants
BEGIN
    INSERT INTO plans (tenant_id, name, device_limit, price_cents, when_full, status, version, created_at, updated_at)
    VALUES
        (NEW.id, 'basic', 1, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'standard', 2, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'premium', 4, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at);
END;

INSERT INTO plans (tenant_id, name, device_limit, price_cents, when_full, status, version, created_at, updated_at)
SELECT tenants.id, builtin.column1, builtin.column2, 0, 'evict', 'active', 0, tenants.created_at, tenants.created_at
FROM tenants, (VALUES ('basic', 1), ('standard', 2), ('premium', 4)) AS builtin;

-- Never deleted. Of one user's, the newest has the greatest version.
CREATE TABLE subscriptions (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL CHECK (user_id <> ''),
    plan       TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('active', 'cancelled', 'expired')),
    starts_at  TEXT    NOT NULL,
    ends_at    TEXT    CHECK (ends_at > starts_at),
    version    INTEGER NOT NULL CHECK (version >= 1),
    created_at TEXT    NOT NULL,
    updated_at TEXT    NOT NULL,
    FOREIGN KEY (tenant_id, plan) REFERENCES plans (tenant_id, name)
) STRICT;

CREATE UNIQUE INDEX subscriptions_active ON subscriptions (tenant_id, user_id) WHERE status = 'active';
CREATE INDEX subscriptions_by_user ON subscriptions (tenant_id, user_id, version);
CREATE INDEX subscriptions_by_tenant ON subscriptions (tenant_id, id);
CREATE INDEX subscriptions_by_plan ON subscriptions (tenant_id, plan, id);

-- What plans granted when, for the proof.
CREATE INDEX audit_log_of_plans ON audit_log (tenant_id, pool_id, seq) WHERE stream = 'plan';

-- Idempotency keys are for writes of anything, not of licenses alone.
CREATE TABLE idempotent_answers (
    tenant_id       TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash    BLOB NOT NULL,
    entity_kind     TEXT NOT NULL CHECK (entity_kind IN ('license', 'plan', 'subscription')),
    entity_id       TEXT NOT NULL,
    answer          TEXT NOT NULL,
    at              TEXT NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
) STRICT;

INSERT INTO idempotent_answers (tenant_id, idempotency_key, request_hash, entity_kind, entity_id, answer, at)
SELECT
    tenant_id, idempotency_key, request_hash, 'license',
    lower(
        substr(hex(license_id), 1, 8) || '-' || substr(hex(license_id), 9, 4) || '-'
        || substr(hex(license_id), 13, 4) || '-' || substr(hex(license_id), 17, 4) || '-'
        || substr(hex(license_id), 21)
    ),
    answer, at
FROM idempotency_keys;

DROP TABLE idempotency_keys;
ALTER TABLE idempotent_answers RENAME TO idempotency_keys;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
