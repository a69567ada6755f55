//! Free ports of 127.0.0.1.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// First port. The range is below the system's ephemeral ports, so a server that is down for a while finds
/// its port still free.
const FIRST: u16 = 12_000;
const COUNT: u16 = 18_000;

/// Returns a port without a listener, not returned lately by a call in the same process.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes start at different ports.
    let start = (std::process::id() % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start.wrapping_mul(37).wrapping_add(step)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 is free");
}
