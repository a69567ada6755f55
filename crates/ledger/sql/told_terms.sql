-- Counts the admissions by nodes in place of unreachable homes, by subscriber and terms.
SELECT tenant_id, pool_id, limit_version, limit_seats, COUNT(*) AS admissions
FROM audit_log
WHERE pool_kind = 'subscriber' AND stream = 'node' AND action = 'admitted_alone' AND detail LIKE '%"without_home":true%'
GROUP BY tenant_id, pool_id, limit_version, limit_seats
