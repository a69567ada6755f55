//! Reads the files of the source tree that people read.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no sources of the project.
const SKIPPED: &[&str] = &["target", "node_modules", ".git", ".venv", "dist"];

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rust.
    Rust,
    /// Lua or SQL: `--` begins a comment.
    Script,
    /// Markdown.
    Page,
}

/// A file of the tree.
pub(crate) struct SourceFile {
    /// The path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl SourceFile {
    /// A file with this text. The kind follows from the path's extension.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let kind = kind_of(Path::new(path)).expect("a kind that is read");
        Self { path: path.to_owned(), kind, text: text.to_owned() }
    }

    /// Returns whether the file is `part`, or below the folder `part`.
    pub(crate) fn is_in(&self, part: &str) -> bool {
        self.path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns whether the file begins with a comment on its subject. Pages have titles and need no header.
    pub(crate) fn has_header(&self) -> bool {
        let first = self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        match self.kind {
            Kind::Rust => first.starts_with("//!"),
            Kind::Script => first.starts_with("--"),
            Kind::Page => true,
        }
    }

    /// The lines that are no comments.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim_start().starts_with("//") && !line.contains('"'))
    }
}

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads every Rust, Lua, SQL and Markdown file of the tree.
pub(crate) fn sources() -> Vec<SourceFile> {
    let root = root();
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            } else if path.is_file() && kind_of(&path).is_some() {
                let text = fs::read_to_string(&path).expect("a source file in UTF-8");
                let path = path.strip_prefix(&root).expect("a path below the root");
                files.push(SourceFile::new(&path.to_string_lossy(), &text));
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn kind_of(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()? {
        "rs" => Some(Kind::Rust),
        "lua" | "sql" => Some(Kind::Script),
        "md" => Some(Kind::Page),
        _ => None,
    }
}
