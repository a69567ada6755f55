module seatkeeper.dev/seatkeeper

go 1.22
