//! Real servers for tests: started from installed binaries on free ports, and ended by their owner.
