-- Returns whether the lasting section is served.
SELECT registry.is_lasting_served()
