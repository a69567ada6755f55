-- The table of commits measured alone.
CREATE TABLE commits (id UUID PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT now());
