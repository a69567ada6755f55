-- Sets registry time back to $1: see registry.repair_clock.
SELECT told, waiting FROM registry.repair_clock($1)
