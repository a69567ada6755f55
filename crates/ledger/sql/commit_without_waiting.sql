-- Lets this transaction commit without a wait for the disk: a crash of the server may lose it.
SET LOCAL synchronous_commit TO off
