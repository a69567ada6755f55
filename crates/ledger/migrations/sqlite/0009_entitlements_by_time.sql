-- The changes of entitlements of a time: who makes sure that each has reached its live sessions reads the newest.
CREATE INDEX audit_log_of_entitlements ON audit_log (at) WHERE stream = 'entitlement';
