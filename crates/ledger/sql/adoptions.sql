-- Reads every lost region with its successor.
SELECT lost, successor, admits_from, is_done FROM region_adoptions ORDER BY lost
