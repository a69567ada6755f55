-- Reads every lost region with its successor.
SELECT lost, successor, admits_from, is_done, audit_head FROM region_adoptions ORDER BY lost
