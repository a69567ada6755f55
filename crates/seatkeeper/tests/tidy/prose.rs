//! Measures how plainly comments and pages are written.
//!
//! A word points if it names nothing by itself and sends the reader elsewhere. A text that says its nouns has few.

use std::fmt;

use super::sources::{Kind, SourceFile};

/// Words that only point.
const POINTING: &str = " it its itself that this these those they them their what whatever who whom whose whoever which \
    where there here one ones such so same other others another else both each any all none nobody somebody anybody \
    everybody nothing something anything everything how whether then thus ";

/// Words that open a doc comment without saying its subject.
const OPENINGS: &str =
    " what who whom whose whoever whether how those one it its likewise such these here there none ";

/// The figures of some files.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) words: usize,
    pub(crate) pointing: usize,
    /// Doc comments.
    pub(crate) docs: usize,
    /// Doc comments that open with a pointing word.
    pub(crate) openings: usize,
}

impl Figures {
    /// Measures every comment of Rust, Lua and SQL, and every paragraph of Markdown.
    pub(crate) fn of_files<'a>(files: impl IntoIterator<Item = &'a SourceFile>) -> Self {
        let mut figures = Self::default();
        for file in files {
            for block in blocks(file) {
                figures.add(&block);
            }
        }
        figures
    }

    pub(crate) fn pointing_percent(&self) -> f64 {
        percent(self.pointing, self.words)
    }

    pub(crate) fn openings_percent(&self) -> f64 {
        percent(self.openings, self.docs)
    }

    fn add(&mut self, block: &Block) {
        let plain = without_names(&block.text);
        let words: Vec<_> = words(&plain).collect();
        let is_in = |list: &str, word: &str| list.contains(&format!(" {word} "));
        self.words += words.len();
        self.pointing += words.iter().filter(|word| is_in(POINTING, word)).count();
        if block.is_doc {
            self.docs += 1;
            self.openings += usize::from(words.first().is_some_and(|word| is_in(OPENINGS, word)));
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pointing, openings) = (self.pointing_percent(), self.openings_percent());
        write!(
            f,
            "pointing {pointing:.1} % of {} words; openings {openings:.1} % of {}",
            self.words, self.docs
        )
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// A run of comment lines, or a paragraph of a page.
struct Block {
    is_doc: bool,
    text: String,
}

fn blocks(file: &SourceFile) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut is_open, mut is_fenced) = (false, false);
    for line in file.text.lines() {
        let trimmed = line.trim_start();
        is_fenced ^= file.kind == Kind::Page && trimmed.starts_with("```");
        let Some((is_doc, text)) = comment(file.kind, trimmed, is_fenced) else {
            is_open = false;
            continue;
        };
        match blocks.last_mut().filter(|block| is_open && block.is_doc == is_doc) {
            Some(block) => block.text.extend([" ", text]),
            None => blocks.push(Block { is_doc, text: text.to_owned() }),
        }
        is_open = true;
    }
    blocks
}

/// Returns the words of a line of prose, and whether the line is part of a doc comment.
fn comment(kind: Kind, line: &str, is_fenced: bool) -> Option<(bool, &str)> {
    let (is_doc, text) = match kind {
        Kind::Rust => {
            let text = line.strip_prefix("//")?;
            let doc = text.strip_prefix(['/', '!']);
            (doc.is_some(), doc.unwrap_or(text))
        }
        Kind::Script => (false, line.strip_prefix("--")?.trim_start_matches('-')),
        Kind::Page if is_fenced || line.starts_with(['|', '#', '`']) => return None,
        Kind::Page => {
            (false, line.trim_start_matches(['-', '*', '>', '.', ' ', '0', '1', '2', '3', '4', '5']))
        }
    };
    Some((is_doc, text.trim())).filter(|(_, text)| !text.is_empty())
}

/// Replaces code in backticks, links and URLs by a letter.
fn without_names(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let text: String = parts.map(|(number, part)| if number % 2 == 0 { part } else { "X" }).collect();
    let words = text.split_whitespace().map(|word| if word.contains("://") { "X" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let is_inner = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '\'' | '’' | '-');
    let words = text.split(move |letter: char| !is_inner(letter));
    words.map(|word| word.trim_matches(['\'', '’', '-']).to_ascii_lowercase()).filter(|word| !word.is_empty())
}
