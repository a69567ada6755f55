//! `seatkeeper config`: prints, checks and explains the settings.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use seatkeeper_server::SectionReference;

use super::error::sentence;
use super::{EXIT_FAILED, Error};
use crate::args::SettingsArgs;
use crate::{output, settings};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print every fault of the settings and of the files named by them; exit with 1 on any fault
    Check(SettingsArgs),
    /// Explain every setting, as Markdown
    Reference,
}

pub(crate) fn run(args: &ConfigArgs) -> Result<ExitCode, Error> {
    match &args.what {
        None => {
            let settings = settings::load(&args.settings.sources())?;
            output::line(toml::to_string(&settings)?.trim_end())?;
        }
        Some(What::Check(args)) => return check(args),
        Some(What::Reference) => output::line(reference().trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: &SettingsArgs) -> Result<ExitCode, Error> {
    let faults = settings::faults(&args.sources());
    if faults.is_empty() {
        output::line("the settings are right")?;
        return Ok(ExitCode::SUCCESS);
    }
    for fault in &faults {
        output::line(sentence(fault))?;
    }
    Ok(ExitCode::from(EXIT_FAILED))
}

/// The widest line of the reference, in characters.
const LINE_CHARS_MAX: usize = 120;

/// Returns the reference of all settings: a heading and a list for each section.
fn reference() -> String {
    let mut text = String::new();
    for SectionReference { name, about, keys } in SectionReference::all() {
        // The comment begins with the section's name, which is the heading already.
        let about = about.rsplit_once("]`: ").map_or(about.as_str(), |(_, about)| about);
        let mut letters = about.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
        // Writing to a `String` cannot fail.
        let _ = write!(text, "## `[{name}]`\n\n{first}{}\n\n", letters.as_str());
        for (key, what) in keys {
            add_item(&mut text, &format!("`{key}`: {what}"));
        }
        text.push('\n');
    }
    text
}

/// Adds a list item, wrapped at [`LINE_CHARS_MAX`].
fn add_item(text: &mut String, item: &str) {
    let mut line = "-".to_owned();
    for word in item.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            text.push_str(&line);
            text.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
