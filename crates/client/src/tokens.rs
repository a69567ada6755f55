//! Sources of bearer tokens, and the token of the moment.

use std::fmt;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{Failure, Response, TOKEN_TIMEOUT};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::license_tokens::{LicenseTokens, Refused};
use crate::token_text::is_token;
use crate::worker;

/// The reason why a source has no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file of the token cannot be read.
    #[error("the file of the token cannot be read")]
    File(#[from] std::io::Error),
    /// The program's own source failed.
    #[error("the token source failed: {0}")]
    Source(String),
    /// The source gave a text that is no token.
    #[error("the source gave no token: a token is one line of ASCII")]
    Malformed,
}

/// The reason why a request has no token.
#[derive(Debug)]
pub(crate) enum NoToken {
    /// The program's source has none.
    Source,
    /// The server answered the request for a license token with a refusal.
    Answer(Response),
    /// The request for a license token got no answer.
    Failure(Failure),
}

impl From<Refused> for NoToken {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Answer(response) => Self::Answer(response),
            Refused::Failure(failure) => Self::Failure(failure),
        }
    }
}

/// The name under which a token is cached: the machine of a license token, or one name for all machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TokenOwner(pub Arc<str>);

/// The tokens of a client.
#[derive(Debug)]
pub(crate) enum Tokens {
    /// One token for all machines.
    Shared(TokenCache),
    /// A license token for each machine.
    License(LicenseTokens),
}

impl Tokens {
    /// Returns the owner of the token for a seat of this machine.
    pub(crate) fn owner(&self, machine_id: &str) -> TokenOwner {
        match self {
            Self::Shared(_) => TokenOwner::default(),
            Self::License(_) => TokenOwner(machine_id.into()),
        }
    }

    /// Returns the token of the moment; the first call fetches it.
    pub(crate) async fn current(&self, owner: &TokenOwner) -> Result<String, NoToken> {
        match self {
            Self::Shared(cache) => cache.current().await,
            Self::License(tokens) => Ok(tokens.current(&owner.0).await?),
        }
    }

    /// Returns the failure of a request whose time was over before its token came: the request was not sent. A license token
    /// comes from the server itself, which gave no answer in time.
    pub(crate) fn late(&self) -> Failure {
        match self {
            Self::Shared(_) => Failure::NoToken,
            Self::License(_) => Failure::Timeout,
        }
    }

    /// Replaces a rejected token. Returns false if no token comes within `timeout`.
    pub(crate) async fn refresh(&self, owner: &TokenOwner, timeout: Duration) -> bool {
        match self {
            Self::Shared(cache) => cache.refresh(timeout).await,
            Self::License(tokens) => tokens.refresh(&owner.0).await,
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<String, TokenError>> + Send>>;
type Callback = Arc<dyn Fn() -> Answer + Send + Sync>;

/// A source of tokens. Its `Debug` shows no token.
#[derive(Clone)]
pub(crate) enum TokenSource {
    Static(String),
    File(TokenFile),
    Callback(Callback),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(_) => f.write_str("Static(..)"),
            Self::File(file) => f.debug_tuple("File").field(&file.path).finish(),
            Self::Callback(_) => f.write_str("Callback(..)"),
        }
    }
}

impl TokenSource {
    pub(crate) fn callback<F, A>(source: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, TokenError>> + Send + 'static,
    {
        Self::Callback(Arc::new(move || Box::pin(source())))
    }

    /// Returns a source whose function may block.
    #[cfg(feature = "blocking")]
    pub(crate) fn blocking<F>(source: F) -> Self
    where
        F: Fn() -> Result<String, TokenError> + Send + Sync + 'static,
    {
        let (source, calling) = (Arc::new(source), Arc::default());
        Self::callback(move || {
            let (source, calling) = (source.clone(), Arc::clone(&calling));
            async move {
                let call = worker::run_one_at_a_time("seatkeeper-auth", &calling, move || source());
                call.await.unwrap_or_else(|error| Err(TokenError::Source(error.to_string())))
            }
        })
    }

    /// Returns a fresh token, without white space at the ends. Another text is an error, and takes no token's place.
    async fn fetch(&self) -> Result<String, TokenError> {
        let text = match self {
            Self::Static(token) => token.clone(),
            Self::File(file) => file.read().await?,
            Self::Callback(callback) => call(callback.clone()).await?,
        };
        let token = text.trim();
        if is_token(token) { Ok(token.to_owned()) } else { Err(TokenError::Malformed) }
    }
}

/// A file with a token.
#[derive(Clone)]
pub(crate) struct TokenFile {
    path: PathBuf,
    /// Locked by the thread that reads, to the end of the reading: a file server that hangs keeps one thread, also after
    /// every caller has given up.
    reading: Arc<Mutex<()>>,
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, reading: Arc::default() }
    }

    /// Waits for the end of an earlier reading, then reads the file.
    async fn read(&self) -> Result<String, TokenError> {
        let path = self.path.clone();
        let read = move || fs::read_to_string(path);
        Ok(worker::run_one_at_a_time("seatkeeper-file", &self.reading, read).await??)
    }
}

/// Calls the program's source in a separate task, so a panic of the source is an error. A dropped call is aborted.
async fn call(callback: Callback) -> Result<String, TokenError> {
    let mut task = JoinSet::new();
    task.spawn(async move { callback().await });
    match task.join_next().await {
        Some(Ok(token)) => token,
        Some(Err(_)) | None => Err(TokenError::Source("the source panicked".to_owned())),
    }
}

/// The token of the moment, fetched once for all requests that need it.
#[derive(Debug)]
pub(crate) struct TokenCache {
    source: TokenSource,
    /// Locked during the first fetch. Requests that need the token wait for the lock.
    current: Arc<Mutex<Option<String>>>,
    /// The timeout of the first fetch.
    timeout: Duration,
}

impl TokenCache {
    pub(crate) fn new(source: TokenSource) -> Self {
        Self { source, current: Arc::default(), timeout: TOKEN_TIMEOUT }
    }

    /// Returns the token of the moment; the first call fetches it. The fetch outlives a request that is dropped, and its token
    /// serves the next request.
    async fn current(&self) -> Result<String, NoToken> {
        let mut current = self.current.clone().lock_owned().await;
        if let Some(token) = &*current {
            return Ok(token.clone());
        }
        let (source, timeout) = (self.source.clone(), self.timeout);
        let fetching = tokio::spawn(async move {
            *current = tokio::time::timeout(timeout, source.fetch()).await.ok()?.ok();
            current.clone()
        });
        // A panic of the fetch leaves no token as well.
        fetching.await.ok().flatten().ok_or(NoToken::Source)
    }

    /// Replaces the token by a fresh token. Returns false, and keeps the old token, if no token comes within `timeout`.
    async fn refresh(&self, timeout: Duration) -> bool {
        match tokio::time::timeout(timeout, self.source.fetch()).await {
            Ok(Ok(token)) => {
                *self.current.lock().await = Some(token);
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};
    #[cfg(target_os = "linux")]
    use std::{path::Path, thread, time::Instant};

    use super::*;

    #[tokio::test]
    async fn a_token_source_that_hangs_or_panics_is_given_up() {
        let hanging = TokenCache::new(TokenSource::callback(pending));
        assert!(!hanging.refresh(Duration::from_millis(20)).await);
        let panicking = TokenSource::callback(|| async { panic!("the program's own fault") });
        assert!(!TokenCache::new(panicking).refresh(Duration::from_secs(60)).await);
    }

    #[tokio::test]
    async fn a_text_that_is_no_token_takes_no_tokens_place() {
        let texts = Mutex::new(vec!["fresh", "two lines\nof text", "<html>\u{e9}</html>", "", " first\n"]);
        let texts = Arc::new(texts);
        let cache = TokenCache::new(TokenSource::callback(move || {
            let texts = texts.clone();
            async move { Ok(texts.lock().await.pop().unwrap_or_default().to_owned()) }
        }));
        assert_eq!(cache.current().await.unwrap(), "first");
        for _ in 0..3 {
            assert!(!cache.refresh(Duration::from_secs(60)).await);
            assert_eq!(cache.current().await.unwrap(), "first");
        }
        assert!(cache.refresh(Duration::from_secs(60)).await);
        assert_eq!(cache.current().await.unwrap(), "fresh");
    }

    /// Counts the threads of this process with a name.
    #[cfg(target_os = "linux")]
    fn threads(name: &str) -> usize {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|found| found.trim_end() == name).count()
    }

    #[cfg(target_os = "linux")]
    fn make_pipe(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// A named pipe hangs as a file server may: its reader waits for a writer.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_token_file_that_hangs_keeps_one_thread_for_all_rejections() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("token"), folder.path().join("aside"));
        make_pipe(&path);
        let cache = TokenCache::new(TokenSource::File(TokenFile::new(path.clone())));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refresh = |patience| runtime.block_on(cache.refresh(patience));
        let hung = [(); 5].map(|()| refresh(Duration::from_millis(20)));
        let began = Instant::now();
        while threads("seatkeeper-file") == 0 && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        let readers = threads("seatkeeper-file");
        fs::rename(&path, &aside).unwrap();
        fs::write(&path, "fresh\n").unwrap();
        let beside = refresh(Duration::from_millis(20));
        // A panic before the end of the pipe's reader would wait for the reader.
        fs::write(&aside, "late").unwrap();
        assert_eq!((hung, readers), ([false; 5], 1));
        assert!(!beside, "the reader of the pipe is waited for");
        assert!(refresh(Duration::from_secs(60)));
        assert_eq!(runtime.block_on(cache.current()).unwrap(), "fresh");
    }

    #[cfg(all(target_os = "linux", feature = "blocking"))]
    #[test]
    fn a_blocking_token_source_that_hangs_keeps_one_thread_for_all_rejections() {
        let (answer, answers) = std::sync::mpsc::channel();
        let answers = std::sync::Mutex::new(answers);
        let cache = TokenCache::new(TokenSource::blocking(move || {
            answers.lock().unwrap().recv().map_err(|error| TokenError::Source(error.to_string()))
        }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refresh = |patience| runtime.block_on(cache.refresh(patience));
        let hung = [(); 5].map(|()| refresh(Duration::from_millis(20)));
        let began = Instant::now();
        while threads("seatkeeper-auth") == 0 && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        let callers = threads("seatkeeper-auth");
        for token in ["late", "fresh"] {
            answer.send(token.to_owned()).unwrap();
        }
        let refreshed = refresh(Duration::from_secs(60));
        // A panic before the end of the calls would wait for the calls.
        drop(answer);
        assert_eq!((hung, callers), ([false; 5], 1));
        assert!(refreshed);
        assert_eq!(runtime.block_on(cache.current()).unwrap(), "fresh", "nobody waits for the first call");
    }

    #[tokio::test]
    async fn a_token_source_that_hangs_in_its_first_call_is_asked_again() {
        let is_first = AtomicBool::new(true);
        let cache = TokenCache::new(TokenSource::callback(move || {
            let hangs = is_first.swap(false, Ordering::Relaxed);
            async move { if hangs { pending().await } else { Ok("t".to_owned()) } }
        }));
        let cache = TokenCache { timeout: Duration::from_millis(50), ..cache };
        // A request drops the wait for the call at the end of its own time.
        assert!(tokio::time::timeout(Duration::from_millis(20), cache.current()).await.is_err());
        assert_eq!(cache.current().await.unwrap(), "t");
    }

    #[cfg(feature = "blocking")]
    #[tokio::test]
    async fn a_first_token_that_comes_after_its_request_serves_the_next_one() {
        let (answer, answers) = std::sync::mpsc::channel();
        let answers = std::sync::Mutex::new(answers);
        let cache = TokenCache::new(TokenSource::blocking(move || {
            answers.lock().unwrap().recv().map_err(|error| TokenError::Source(error.to_string()))
        }));
        assert!(tokio::time::timeout(Duration::from_millis(20), cache.current()).await.is_err());
        answer.send("first".to_owned()).unwrap();
        assert_eq!(cache.current().await.unwrap(), "first", "the source is called once");
        drop(answer);
        assert_eq!(cache.current().await.unwrap(), "first");
    }
}
