// The wrapper is enough by itself: no header comes before it.
#include <seatkeeper.hpp>

int main() { return 0; }
