//! What a machine can see of our style (`docs/style.md`): sizes, widths, banned words and the
//! tables that have to list every limit, error and metric.

use std::fs;
use std::path::{Path, PathBuf};

const LINE_CHARS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;
const FILE_LINES_MAX_WITH_TESTS: usize = 1000;
const FUNCTION_LINES_MAX: usize = 70;

/// Names that say nothing about what a module holds.
const BANNED_MODULES: &[&str] = &[
    "utils", "util", "helpers", "common", "manager", "types", "misc",
];

/// Text that must not stand in a source file of ours.
const BANNED_TEXT: &[&str] = &[
    "TODO",
    "FIXME",
    "XXX",
    "todo!(",
    "unimplemented!(",
    "#[ignore",
];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn shown(&self) -> String {
        self.path
            .strip_prefix(root())
            .unwrap_or(&self.path)
            .display()
            .to_string()
    }

    /// The lines before the unit tests at the end of the file.
    fn code_lines(&self) -> usize {
        self.text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .count()
    }

    fn is_test(&self) -> bool {
        self.path
            .components()
            .any(|part| part.as_os_str() == "tests")
    }
}

#[test]
fn files_and_lines_stay_readable() {
    let mut faults = Vec::new();
    for source in sources() {
        let name = source.shown();
        for (number, line) in (1..).zip(source.text.lines()) {
            if line.chars().count() > LINE_CHARS_MAX && !line.contains("http") {
                faults.push(format!(
                    "{name}:{number}: longer than {LINE_CHARS_MAX} characters"
                ));
            }
        }
        let lines = source.text.lines().count();
        if source.code_lines() > FILE_LINES_MAX && !source.is_test() {
            faults.push(format!("{name}: {} lines of code", source.code_lines()));
        }
        if lines > FILE_LINES_MAX_WITH_TESTS {
            faults.push(format!("{name}: {lines} lines"));
        }
        if !source.text.starts_with("//!") && !source.text.starts_with("#!") {
            faults.push(format!(
                "{name}: the first line does not say what the file is"
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn functions_fit_on_a_screen() {
    let mut faults = Vec::new();
    for source in sources() {
        let lines: Vec<&str> = source.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            if !is_function(line.trim_start()) || line.trim_end().ends_with(';') {
                continue;
            }
            let close = format!("{}}}", " ".repeat(indent));
            let length = lines[start..]
                .iter()
                .position(|line| *line == close)
                .unwrap_or(0);
            if length > FUNCTION_LINES_MAX {
                faults.push(format!("{}:{}: {length} lines", source.shown(), start + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.find(|word| !is_qualifier(word)) == Some("fn")
}

fn is_qualifier(word: &str) -> bool {
    word.starts_with("pub") || matches!(word, "async" | "const" | "extern" | "\"C\"" | "in")
}

#[test]
fn no_unfinished_marks_and_no_empty_names() {
    let mut faults = Vec::new();
    for source in sources()
        .into_iter()
        .filter(|source| !source.path.ends_with("tests/tidy.rs"))
    {
        for word in BANNED_TEXT {
            if source.text.contains(word) {
                faults.push(format!("{}: has `{word}`", source.shown()));
            }
        }
        let stem = source
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        if BANNED_MODULES.contains(&&*stem) {
            faults.push(format!(
                "{}: name the noun that the module holds",
                source.shown()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_limit_is_documented() {
    let documented = fs::read_to_string(root().join("docs/limits.md")).expect("docs/limits.md");
    let mut faults = Vec::new();
    for source in sources().into_iter().filter(|source| !source.is_test()) {
        let is_list = source.path.ends_with("src/limits.rs");
        for name in limits_of(&source.text, is_list) {
            if !documented.contains(&format!("`{name}`")) {
                faults.push(format!(
                    "{}: `{name}` is not in docs/limits.md",
                    source.shown()
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The public fields of a struct `Limits`, and in a list of limits the public constants.
fn limits_of(text: &str, is_list: bool) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_struct = false;
    for line in text.lines() {
        in_struct = line == "pub struct Limits {" || in_struct && line != "}";
        let field = line.strip_prefix("    pub ").filter(|_| in_struct);
        let constant = line.strip_prefix("pub const ").filter(|_| is_list);
        names.extend(
            field
                .or(constant)
                .and_then(|rest| Some(rest.split_once(':')?.0)),
        );
    }
    names
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for directory in ["crates", "xtask", "fuzz"] {
        collect(&root().join(directory), &mut found);
    }
    assert!(found.len() > 10, "the walk finds the sources");
    found
}

fn collect(directory: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            found.push(Source { path, text });
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the workspace exists")
}
