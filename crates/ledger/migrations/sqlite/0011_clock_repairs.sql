-- Each time that an operator set registry time right on record. Records of the audit log up to `audit_head` may be
-- dated up to `wrong_until`; later records are dated from `repaired_at` on.
CREATE TABLE clock_repairs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    repaired_at TEXT    NOT NULL,
    wrong_until TEXT    NOT NULL,
    audit_head  INTEGER NOT NULL CHECK (audit_head >= 0),
    actor       TEXT    NOT NULL CHECK (actor <> ''),
    sessions    INTEGER NOT NULL CHECK (sessions >= 0),
    CHECK (repaired_at < wrong_until)
) STRICT;

CREATE TRIGGER clock_repairs_stay BEFORE UPDATE ON clock_repairs
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER clock_repairs_are_kept BEFORE DELETE ON clock_repairs
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;
