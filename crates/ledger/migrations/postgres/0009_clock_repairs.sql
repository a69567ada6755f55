-- Each time that an operator set registry time right on record. Records of the audit log up to `audit_head` may be
-- dated up to `wrong_until`; later records are dated from `repaired_at` on.
CREATE TABLE clock_repairs (
    id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repaired_at TIMESTAMPTZ NOT NULL,
    wrong_until TIMESTAMPTZ NOT NULL,
    audit_head  BIGINT      NOT NULL CHECK (audit_head >= 0),
    actor       TEXT        COLLATE "C" NOT NULL CHECK (actor <> ''),
    sessions    BIGINT      NOT NULL CHECK (sessions >= 0),
    CHECK (repaired_at < wrong_until)
);

CREATE TRIGGER clock_repairs_stay BEFORE UPDATE OR DELETE ON clock_repairs
FOR EACH ROW EXECUTE FUNCTION refuse_change();
