-- Records the standing of the deployment with its peers. $1 is confirmed, $2 refused by
UPDATE own_region SET is_confirmed = $1, refused_by = $2
