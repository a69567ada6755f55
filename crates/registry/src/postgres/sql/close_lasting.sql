-- Closes the lasting section: see registry.close_lasting.
SELECT registry.close_lasting()
