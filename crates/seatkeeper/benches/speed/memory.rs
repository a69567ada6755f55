//! The memory of a live session in the registry: the growth of a process that holds a million sessions.

use clap::ValueEnum;

use crate::child::Child;
use crate::crowd::Crowd;
use crate::effort::Effort;
use crate::error::Error;
use crate::process::resident_bytes;
use crate::verdict::{Bound, Line};

const BYTES_PER_SESSION: Bound = Bound::Below(400.0);

const RESULT: &str = "bytes per session: ";

/// The distribution of sessions over pools.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shape {
    /// One per pool
    Alone,
    /// Four per pool
    Few,
    /// A thousand per pool
    Many,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Alone, Self::Few, Self::Many];

    const fn sessions_per_pool(self) -> u32 {
        match self {
            Self::Alone => 1,
            Self::Few => 4,
            Self::Many => 1_000,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Few => "few",
            Self::Many => "many",
        }
    }
}

pub(crate) fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    Shape::ALL.iter().map(|&shape| measured(shape, effort)).collect()
}

fn measured(shape: Shape, effort: Effort) -> Result<Line, Error> {
    let each = shape.sessions_per_pool();
    eprintln!("memory: {each} to a pool");
    let sessions = effort.sessions.to_string();
    let said = Child::in_role(&["memory", shape.as_str(), &sessions])?.says(RESULT)?;
    let bytes = said.parse().map_err(|_| Error::Unclear { said })?;
    let what = format!("bytes per session, {each} to a pool");
    Ok(Line::new(what, BYTES_PER_SESSION, &[bytes], format!("{sessions} sessions")))
}

/// Fills a registry in this process, and prints the growth of the process in bytes per session.
pub(crate) fn fill(shape: Shape, sessions: u32) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Error::Runtime)?;
    let bytes = runtime.block_on(async {
        let crowd = Crowd::new();
        let own = std::process::id();
        let before = resident_bytes(own)?;
        let each = shape.sessions_per_pool();
        for pool in 0..sessions / each {
            let license = crowd.license(each).await?;
            for seat in 0..each {
                crowd.acquire(&license, u64::from(pool * each + seat)).await?;
            }
        }
        Ok::<_, Error>(resident_bytes(own)?.saturating_sub(before))
    })?;
    println!("{RESULT}{}", bytes as f64 / f64::from(sessions));
    Ok(())
}
