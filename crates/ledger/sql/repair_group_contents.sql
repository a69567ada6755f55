-- Forgets the contents kept after $1, because their times are wrong.
DELETE FROM group_contents WHERE at > $1
