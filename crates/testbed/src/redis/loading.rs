//! A server that loads its data for as long as a test wants, and answers `-LOADING` meanwhile.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Redis, RedisSetup, START_MAX};

/// The number of keys to load. Each is loaded after a pause.
const KEYS: u32 = 30_000;

/// The pause before each key, in microseconds: the data takes five minutes to load, unless
/// [`Redis::end_loading`] drops the pause.
const PAUSE_MICROS: u32 = 10_000;

/// A server in the middle of a reload.
#[derive(Debug)]
pub struct Loading(JoinHandle<()>);

impl RedisSetup {
    /// Lets [`Redis::begin_to_load`] keep the server loading.
    pub fn loads_slowly(self) -> Self {
        // A loading server answers its clients only between two portions of its file.
        self.setting("enable-debug-command yes").setting("loading-process-events-interval-bytes 1024")
    }
}

impl Redis {
    /// Makes the server write its data to disk and load them again, as a restart does with a large dump. Waits for
    /// the first `-LOADING`.
    pub fn begin_to_load(&self) -> Loading {
        self.ask::<()>(redis::cmd("DEBUG").arg("POPULATE").arg(KEYS).arg("filler").arg(64).take());
        self.delay_loading(PAUSE_MICROS);
        let mut connection = self.connection();
        let reload = thread::spawn(move || {
            redis::cmd("DEBUG").arg("RELOAD").exec(&mut connection).expect("the data can be loaded");
        });
        let started = Instant::now();
        while !self.is_loading() {
            assert!(started.elapsed() < START_MAX, "the server does not load its data");
            thread::sleep(Duration::from_millis(5));
        }
        Loading(reload)
    }

    /// Lets the server load the rest of its data at once, and waits for the end.
    pub fn end_loading(&self, Loading(reload): Loading) {
        assert!(self.is_loading(), "the data were loaded too soon");
        self.delay_loading(0);
        reload.join().expect("the data are loaded");
    }

    fn delay_loading(&self, micros: u32) {
        self.ask::<()>(redis::cmd("CONFIG").arg("SET").arg("key-load-delay").arg(micros).take());
    }

    fn is_loading(&self) -> bool {
        let answer = redis::cmd("PING").exec(&mut self.connection());
        answer.is_err_and(|error| error.code() == Some("LOADING"))
    }
}
