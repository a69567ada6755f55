-- Lets the transaction commit without waiting for the disk. A crash of the server may lose the transaction.
SET LOCAL synchronous_commit TO off
