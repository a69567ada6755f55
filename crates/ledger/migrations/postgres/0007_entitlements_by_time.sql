-- Changes of entitlements by time. The reconciler reads the newest, and applies each to its live sessions.
CREATE INDEX audit_log_of_entitlements ON audit_log (at) WHERE stream = 'entitlement';
