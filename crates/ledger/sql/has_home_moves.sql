-- Reads 1 if a home has moved, or is about to leave this region, as far as this region knows; else 0.
SELECT CAST(CASE
    WHEN EXISTS (SELECT 1 FROM home_moves)
        OR EXISTS (SELECT 1 FROM homes WHERE state = 'moving')
        OR EXISTS (SELECT 1 FROM homes WHERE version > 1) THEN 1
    ELSE 0
END AS BIGINT)
