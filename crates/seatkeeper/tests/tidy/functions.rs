//! Finds long functions in sources that rustfmt has formatted: a function ends with a brace at the indentation of its
//! signature.

/// A function and its length in lines.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: usize,
}

/// Returns the functions of more than `max` lines.
pub(crate) fn long_functions(text: &str, max: usize) -> Vec<Function> {
    let lines: Vec<_> = text.lines().collect();
    let functions = lines.iter().enumerate().filter_map(|(start, line)| {
        let name = name(line)?;
        let indentation = &line[..line.len() - line.trim_start().len()];
        let end = lines[start..].iter().position(|line| ends(line, indentation))?;
        Some(Function { name: name.to_owned(), lines: end + 1 })
    });
    functions.filter(|function| function.lines > max).collect()
}

/// Returns the name of the function whose signature begins in `line`.
fn name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    while let Some(rest) = ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe "]
        .iter()
        .find_map(|word| words.strip_prefix(word))
    {
        words = rest;
    }
    let name = words.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// Returns whether `line` ends a function whose signature has this indentation.
fn ends(line: &str, indentation: &str) -> bool {
    let Some(rest) = line.strip_prefix(indentation) else { return false };
    rest == "}"
        || (rest.contains("fn ") && rest.ends_with(['}', ';']))
        || rest == ");"
        || rest.starts_with(") -> ") && rest.ends_with(';')
}
