-- Counts the homes on their way out of this region.
SELECT COUNT(*) FROM homes WHERE state = 'moving'
