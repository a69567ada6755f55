//! Ports of 127.0.0.1 that nobody uses.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that a system gives to connections, so that a server which is down for a while finds
/// its own free again.
const FIRST: u16 = 12_000;
const COUNT: u16 = 18_000;

/// A port that nobody listens on, and that no other call in this process has returned lately.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each process starts at its own place.
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
