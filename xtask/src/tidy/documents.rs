//! The change log and the decisions.

use super::fault::Fault;
use super::tree::Tree;

const CHANGELOG: &str = "CHANGELOG.md";
const DECISIONS: &str = "docs/adr/";
/// A decision that needs more lines is several, or a page of the manual.
const DECISION_LINES_MAX: usize = 40;

/// The change log has room for the next change, and the decisions are numbered without a gap.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(changelog(tree.text(CHANGELOG).unwrap_or_default()));
    let paths: Vec<&str> = tree.under(DECISIONS, "").map(|(path, _)| path).collect();
    faults.extend(numbers(&paths));
    faults.extend(tree.under(DECISIONS, ".md").filter_map(|(path, text)| length(path, text)));
    faults
}

fn changelog(text: &str) -> Option<Fault> {
    let fix = "put the heading `## Unreleased` back on top";
    let is_good = text.lines().any(|line| line == "## Unreleased");
    (!is_good).then(|| Fault::new(CHANGELOG, 1, "no `## Unreleased`", fix))
}

/// `paths` in order must be `0001-TITLE.md`, `0002-TITLE.md` and so on.
fn numbers(paths: &[&str]) -> Vec<Fault> {
    let fix = "name it `NNNN-TITLE.md` with the next free number";
    let is_good = |(index, path): (usize, &str)| {
        let start = format!("{DECISIONS}{:04}-", index + 1);
        path.starts_with(&start) && path.ends_with(".md")
    };
    let bad = paths.iter().copied().enumerate().find(|found| !is_good(*found));
    let fault =
        |(index, path)| Fault::new(path, 1, format!("it should be decision {:04}", index + 1), fix);
    bad.map(fault).into_iter().collect()
}

fn length(path: &str, text: &str) -> Option<Fault> {
    let lines = text.lines().count();
    let what = format!("{lines} lines, a decision has {DECISION_LINES_MAX} at most");
    (lines > DECISION_LINES_MAX).then(|| Fault::new(path, lines, what, "say it shorter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_log_needs_its_open_section() {
        assert_eq!(changelog("# Changes\n\n## Unreleased\n"), None);
        assert!(changelog("# Changes\n\n## 0.1.0\n").is_some());
        assert!(changelog("").is_some());
    }

    #[test]
    fn decision_numbers_are_unbroken() {
        let check = |names: &[&str], expect: Option<&str>| {
            let paths: Vec<String> = names.iter().map(|n| format!("{DECISIONS}{n}")).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let faults = numbers(&paths);
            assert_eq!(faults.first().map(|fault| fault.what.as_str()), expect, "{names:?}");
        };
        check(&[], None);
        check(&["0001-a.md", "0002-b.md"], None);
        check(&["0001-a.md", "0003-b.md"], Some("it should be decision 0002"));
        check(&["0001-a.md", "0001-b.md"], Some("it should be decision 0002"));
        check(&["0002-a.md"], Some("it should be decision 0001"));
        check(&["0001-a.txt"], Some("it should be decision 0001"));
    }

    #[test]
    fn decisions_are_short() {
        assert_eq!(length("a.md", &"x\n".repeat(40)), None);
        assert!(length("a.md", &"x\n".repeat(41)).is_some());
    }
}
