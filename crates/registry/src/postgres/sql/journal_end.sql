-- Reads the end of a bucket's journal: see registry.journal_end.
SELECT epoch, serving, position FROM registry.journal_end($1)
