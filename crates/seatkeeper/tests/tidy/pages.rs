//! Finds lines and table cells of pages that are too wide to read.

use super::sources::SourceFile;

/// The widest line of a page, in characters.
pub(crate) const LINE_MAX: usize = 120;

/// The widest cell of a table, in characters.
pub(crate) const CELL_MAX: usize = 160;

/// Returns the wide lines and cells of a page. Commands in fences are pasted as they stand, and a line that is one link
/// cannot be wrapped: neither counts.
pub(crate) fn wide_lines(page: &SourceFile) -> Vec<String> {
    let (mut is_fenced, mut wide) = (false, Vec::new());
    for (number, line) in page.text.lines().enumerate() {
        is_fenced ^= line.trim_start().starts_with("```");
        if !is_fenced && is_wide(line) {
            wide.push(format!("{}:{}", page.path, number + 1));
        }
    }
    wide
}

fn is_wide(line: &str) -> bool {
    if line.starts_with('|') {
        return line.split('|').any(|cell| cell.trim().chars().count() > CELL_MAX);
    }
    line.chars().count() > LINE_MAX
        && line.split_whitespace().all(|word| word.chars().count() <= LINE_MAX / 2)
}
