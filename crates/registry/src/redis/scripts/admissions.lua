-- Reads the admissions of a bucket after a journal position from the bucket's admission ring.
--
-- The ring has RING_ENTRIES entries of RING_ENTRY_BYTES bytes. A claim that admits a session writes the entry
-- of its journal position, modulo RING_ENTRIES. An entry is: the position (6 bytes), the session's id (16), the
-- holder's key (KEY_BYTES), the pool's name in the due-index (KEY_BYTES). Entries of positions without an
-- admission keep an older position, or zeros.
--
-- KEYS  4 the ring · ARGV  1 a position
-- Reply the time, …, and the entries of the later positions, among them outdated ones
local function entries(first, final)
  return redis.call('GETRANGE', KEYS[4], first * RING_ENTRY_BYTES, (final + 1) * RING_ENTRY_BYTES - 1)
end

local function step()
  local after = math.max(tonumber(ARGV[1]), last - RING_ENTRIES)
  if after >= last then
    return reply('')
  end
  local first, final = (after + 1) % RING_ENTRIES, last % RING_ENTRIES
  if first <= final then
    return reply(entries(first, final))
  end
  return reply(entries(first, RING_ENTRIES - 1) .. entries(0, final))
end
