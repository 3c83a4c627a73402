//! Words that no file of the repository may contain: it must make sense wherever it is cloned.

use super::fault::{Fault, numbered};
use super::tree::Tree;

/// Paths of some author's machine; split here, since this file obeys the rule too.
const PLACES: [&str; 2] = [concat!("/wo", "rk/"), concat!("../sha", "red")];

/// Every file names only what is in the repository or public.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    tree.files().flat_map(|(path, text)| places(path, text)).collect()
}

fn places(path: &str, text: &str) -> Vec<Fault> {
    let fault = |(line, place)| {
        let what = format!("`{place}` is a path of one machine");
        Fault::new(path, line, what, "say it without the path, or with one from the root")
    };
    let found = |(number, line)| {
        PLACES.into_iter().filter(move |place| has_place(line, place)).map(move |p| (number, p))
    };
    numbered(text).flat_map(found).map(fault).collect()
}

/// Whether `line` has `place` not as the tail of a longer path.
fn has_place(line: &str, place: &str) -> bool {
    let is_start = |at| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_./}".contains(c));
    line.match_indices(place).any(|(at, _)| is_start(at))
}

#[cfg(test)]
mod tests {
    use super::super::fault::lines_of;
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found() {
        let check = |text: String, expect: &[usize]| {
            assert_eq!(lines_of(&places("a.md", &text)), expect, "{text:?}");
        };
        check(format!("fine\nsee {}notes", PLACES[0]), &[2]);
        check(format!("(`{}/design.md`)", PLACES[1]), &[1]);
        check(format!("{}a {}", PLACES[0], PLACES[1]), &[1, 1]);
        check(format!("net{}a and bench-work/a", PLACES[0]), &[]);
        check("at work, shared".to_owned(), &[]);
    }
}
