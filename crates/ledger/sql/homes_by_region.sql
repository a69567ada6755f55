-- Counts the homes of a tenant known here by region, and the homes on their way out of this region by target. $1 tenant
SELECT region, COUNT(*) AS homes, SUM(CASE WHEN state = 'moving' THEN 1 ELSE 0 END) AS moving
FROM homes
WHERE tenant_id = $1
GROUP BY region
ORDER BY region
