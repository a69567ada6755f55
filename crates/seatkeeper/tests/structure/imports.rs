//! A reader of the imports between the top modules of a crate, by the text of paths: `crate::a`, `crate::{a,
//! b}`, `super::a`.

use std::collections::{BTreeMap, BTreeSet};

/// A source file of a crate.
pub(crate) struct SourceFile {
    /// The path from the crate's `src`.
    pub(crate) path: String,
    /// The contents.
    pub(crate) text: String,
}

/// The imports between the top modules of a crate, without tests, and without the root, which names every
/// module.
pub(crate) struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    /// Reads the imports of `files`.
    pub(crate) fn new(files: &[SourceFile]) -> Self {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in files {
            if let Some(path) = module_path(&file.path) {
                let depth = path.len();
                let imports = graph.entry(path[0].to_owned()).or_default();
                imports.extend(roots(&tokens(production_code(&file.text)), depth));
            }
        }
        let modules: BTreeSet<_> = graph.keys().cloned().collect();
        for (module, imports) in &mut graph {
            imports.retain(|import| import != module && modules.contains(import));
        }
        Self(graph)
    }

    /// Returns true if module `from` imports module `to`.
    pub(crate) fn imports(&self, from: &str, to: &str) -> bool {
        self.0.get(from).is_some_and(|imports| imports.contains(to))
    }

    /// Returns the modules that import themselves, directly or indirectly, in order.
    pub(crate) fn in_cycles(&self) -> Vec<&str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|module| self.reached_from(module).contains(module))
            .collect()
    }

    /// Returns the modules that a module imports, directly or indirectly.
    fn reached_from<'g>(&'g self, module: &'g str) -> BTreeSet<&'g str> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
        while let Some(module) = next.pop() {
            let imports = self.0.get(module).into_iter().flatten().map(String::as_str);
            next.extend(imports.filter(|import| reached.insert(*import)));
        }
        reached
    }
}

/// Returns the modules from the root to a file, outermost first. `None` for the root and for tests.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let mut modules: Vec<_> = path.strip_suffix(".rs")?.split('/').collect();
    if modules.last() == Some(&"mod") {
        modules.pop();
    }
    let is_root = modules.is_empty() || matches!(modules[0], "lib" | "main");
    (!is_root && !modules.contains(&"tests")).then_some(modules)
}

/// Returns the text before the test module at its end.
fn production_code(text: &str) -> &str {
    let tests = text.match_indices("#[cfg(test)]").find(|(at, attribute)| {
        let after = text[at + attribute.len()..].trim_start();
        after.starts_with("mod ") && after.lines().next().is_some_and(|line| line.contains('{'))
    });
    tests.map_or(text, |(at, _)| &text[..at])
}

/// Splits the text into names, `::` and single signs, without comments.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
            let length = if is_part(first) {
                rest.find(|sign| !is_part(sign)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            tokens.push(token);
            rest = after.trim_start();
        }
    }
    tokens
}

/// Returns the top modules that paths from the root name. `depth` is the depth of the module with the paths.
fn roots(tokens: &[&str], depth: usize) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    let mut rest = tokens;
    while let Some(first) = rest.first() {
        let steps = match *first {
            "crate" => usize::from(rest.get(1) == Some(&"::")),
            "super" => rest.chunks(2).take_while(|pair| *pair == ["super", "::"]).count(),
            _ => 0,
        };
        if steps == 0 {
            rest = &rest[1..];
            continue;
        }
        let is_from_root = *first == "crate" || steps == depth;
        rest = &rest[2 * steps..];
        if is_from_root {
            roots.extend(heads(rest).into_iter().map(str::to_owned));
        }
    }
    roots
}

/// Returns the first name of a path, or of each path of a group.
fn heads<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    if tokens.first() != Some(&"{") {
        return tokens.first().copied().into_iter().collect();
    }
    let (mut heads, mut depth) = (Vec::new(), 0);
    for pair in tokens.windows(2) {
        match pair[0] {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(pair[0], "{" | ",") {
            heads.push(pair[1]);
        }
    }
    heads
}
