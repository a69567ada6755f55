-- Locks the lasting section for a filling: see registry.begin_lasting.
SELECT registry.begin_lasting()
