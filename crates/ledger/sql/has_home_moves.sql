-- Reads 1 if a home has moved into or out of this region or is about to leave, else 0.
SELECT CASE
    WHEN EXISTS (SELECT 1 FROM home_moves) OR EXISTS (SELECT 1 FROM homes WHERE state = 'moving') THEN 1
    ELSE 0
END
