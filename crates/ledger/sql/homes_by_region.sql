-- Counts the homes known here by region, and the homes on their way out of this region by target.
SELECT region, COUNT(*) AS homes, SUM(CASE WHEN state = 'moving' THEN 1 ELSE 0 END) AS moving
FROM homes
GROUP BY region
ORDER BY region
