-- The live sessions on record, at most one per holder of a pool.
--
-- The table is separate from `sessions`, so no index of `sessions` has a column changed by the end of a
-- session. PostgreSQL then writes the ended row beside the live row without touching the indexes of
-- `sessions` (a heap-only tuple update).
CREATE TABLE live_sessions (
    -- The eighth byte of the session's id.
    bucket     BYTEA NOT NULL,
    session_id UUID  NOT NULL,
    tenant_id  TEXT  COLLATE "C" NOT NULL,
    pool_kind  TEXT  COLLATE "C" NOT NULL,
    pool_id    TEXT  COLLATE "C" NOT NULL,
    holder     TEXT  COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, session_id),
    UNIQUE (tenant_id, pool_kind, pool_id, holder)
);

CREATE FUNCTION add_live_sessions() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO live_sessions (bucket, session_id, tenant_id, pool_kind, pool_id, holder)
    SELECT substr(id, 8, 1), id, tenant_id, pool_kind, pool_id, holder FROM begun WHERE ended_at IS NULL;
    RETURN NULL;
END;
$$;

CREATE FUNCTION drop_live_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM live_sessions WHERE bucket = substr(OLD.id, 8, 1) AND session_id = OLD.id;
    RETURN NULL;
END;
$$;

CREATE TRIGGER sessions_begin AFTER INSERT ON sessions REFERENCING NEW TABLE AS begun
FOR EACH STATEMENT EXECUTE FUNCTION add_live_sessions();

-- A row trigger with a condition costs nothing for heartbeats, the most frequent updates of sessions.
CREATE TRIGGER sessions_end AFTER UPDATE OF ended_at ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION drop_live_session();

CREATE TRIGGER sessions_gone AFTER DELETE ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NULL) EXECUTE FUNCTION drop_live_session();

-- No statement changes these columns. The check is an AFTER trigger, because a BEFORE trigger would lock row
-- by row.
CREATE FUNCTION refuse_change_of_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the owner of a session never changes, and an ended session stays ended';
END;
$$;

CREATE TRIGGER sessions_stay AFTER UPDATE OF id, tenant_id, pool_kind, pool_id, holder ON sessions
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_session();

CREATE TRIGGER sessions_stay_over AFTER UPDATE OF ended_at ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL) EXECUTE FUNCTION refuse_change_of_session();

-- Live sessions in the order of the batches of a usage window.
CREATE INDEX live_sessions_metered ON live_sessions (tenant_id, session_id) WHERE pool_kind = 'capacity';
