-- Records the answers of the peers about the deployment. A confirmation stays. $1 is confirmed, $2 refused by, $3 is disputed
UPDATE own_region
SET is_confirmed = CASE WHEN $1 = 1 THEN 1 ELSE is_confirmed END, refused_by = $2, is_disputed = $3
