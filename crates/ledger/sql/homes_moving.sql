-- Reads the homes on their way out of this region.
SELECT tenant_id, user_id, region, version, state, since, seq, admits_from FROM known_homes WHERE state = 'moving'
ORDER BY tenant_id, user_id
