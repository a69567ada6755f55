-- Where the journal of a bucket ends; see registry.journal_end.
SELECT epoch, serving, position FROM registry.journal_end($1)
