//! Rules about the text of Rust sources that neither rustfmt nor clippy checks.

use super::fault::{Fault, numbered};
use super::tree::Tree;

/// The longest line in characters; rustfmt gives up on strings and comments, this does not.
const LINE_CHARS_MAX: usize = 100;
/// The comment that lets lines be longer, with a reason behind it: on the line itself, or on a
/// line of its own above a table, then up to the next empty line.
const WIDE: &str = concat!("// wi", "de:");
/// What must not be merged, and what to do instead; split here, since this file obeys too.
const BANNED: [(&str, &str); 6] = [
    (concat!("TO", "DO"), "do it, or leave it out"),
    (concat!("FIX", "ME"), "fix it, or write a test that asserts today's behaviour"),
    (concat!("todo", "!"), "write the code"),
    (concat!("unimplemented", "!"), "write the code, or return an error"),
    (concat!("#[ign", "ore"), "mend the test, or delete it"),
    (concat!("#[should_", "panic"), "assert on the error, or on `catch_unwind`"),
];

/// All rules of this file over all Rust sources.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let rules = [banned_words, tabs, long_lines, module_docs];
    tree.rust().flat_map(|(path, text)| rules.iter().flat_map(move |r| r(path, text))).collect()
}

fn banned_words(path: &str, text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, line) in numbered(text) {
        for (word, fix) in BANNED {
            if has_word(line, word) {
                faults.push(Fault::new(path, number, format!("`{word}` is not merged"), fix));
            }
        }
    }
    faults
}

/// Whether `line` has `word`, and not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: usize| {
        !line[..at].ends_with(is_letter) && !line[at + word.len()..].starts_with(is_letter)
    };
    line.match_indices(word).any(|(at, _)| stands_alone(at))
}

fn tabs(path: &str, text: &str) -> Vec<Fault> {
    let has_tab = |(_, line): &(usize, &str)| line.contains('\t');
    let fault = |(line, _)| Fault::new(path, line, "a tab", "use spaces, or `\\t` in a string");
    numbered(text).filter(has_tab).map(fault).collect()
}

fn long_lines(path: &str, text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut in_table = false;
    for (number, line) in numbered(text) {
        in_table = line.trim_start().starts_with(WIDE) || (in_table && !line.trim().is_empty());
        let chars = line.chars().count();
        let may_be_long = in_table || line.contains(WIDE) || line.contains("://");
        if chars > LINE_CHARS_MAX && !may_be_long {
            let what = format!("{chars} characters, {LINE_CHARS_MAX} are allowed");
            faults.push(Fault::new(path, number, what, "wrap it, or mark a table as wide"));
        }
    }
    faults
}

/// A source of a crate or an example begins by saying what it is for.
fn module_docs(path: &str, text: &str) -> Vec<Fault> {
    let must = path.split('/').any(|part| part == "src" || part == "examples");
    if !must || text.starts_with("//!") {
        return Vec::new();
    }
    vec![Fault::new(path, 1, "no module docs", "begin with `//!`: what it is for, who calls it")]
}

#[cfg(test)]
mod tests {
    use super::super::fault::lines_of;
    use super::*;

    #[test]
    fn banned_words_are_found_only_as_words() {
        for (word, _) in BANNED {
            let text = format!("fn a() {{}}\n// {word}\n");
            assert_eq!(lines_of(&banned_words("a.rs", &text)), [2], "{word}");
            let text = format!("let x{word}_y = 1;");
            assert_eq!(banned_words("a.rs", &text), [], "{word}");
        }
    }

    #[test]
    fn tabs_are_found() {
        assert_eq!(lines_of(&tabs("a.rs", "a\n\tb\nc\t")), [2, 3]);
        assert_eq!(tabs("a.rs", r#"let tab = "\t";"#), []);
    }

    #[test]
    fn long_lines_are_found() {
        let check = |text: String, expect: &[usize]| {
            assert_eq!(lines_of(&long_lines("a.rs", &text)), expect, "{text:?}");
        };
        check("x".repeat(100), &[]);
        check("\u{e9}".repeat(100), &[]);
        check("x".repeat(101), &[1]);
        check(format!("// https://example.invalid/{}", "x".repeat(100)), &[]);
    }

    #[test]
    fn a_wide_table_ends_at_the_next_empty_line() {
        let long = "x".repeat(120);
        let table = format!("{WIDE} one row per state\n{long}\n{long}\n\n{long}\n");
        assert_eq!(lines_of(&long_lines("a.rs", &table)), [5]);
        let one_line = format!("{long} {WIDE} a literal\n{long}\n");
        assert_eq!(lines_of(&long_lines("a.rs", &one_line)), [2]);
    }

    #[test]
    fn module_docs_are_asked_of_sources_and_examples() {
        let check = |path: &str, text: &str, expect: usize| {
            assert_eq!(module_docs(path, text).len(), expect, "{path}");
        };
        check("graph/src/id.rs", "//! Ids.\n", 0);
        check("graph/src/id.rs", "\n//! Ids.\n", 1);
        check("graph/src/id.rs", "use a;\n", 1);
        check("examples/fixtures.rs", "fn main() {}\n", 1);
        check("tests/crash.rs", "fn a() {}\n", 0);
    }
}
