//! The table of known faults of such systems, `tests/data/cases.json`: which tests play each of
//! them here, or why none does. Every test that it names exists.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

/// One row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The case's name.
    case: String,
    /// The tests, as `FILE::FUNCTION`.
    tests: Vec<String>,
    /// What is another here, or why there is no test.
    #[serde(default)]
    note: String,
}

/// Whether a file has a function, as text: a test that is renamed must be renamed in the table.
fn is_there(test: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else { return false };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.contains(&format!("fn {name}("))
}

#[test]
fn every_case_names_tests_that_exist_or_says_why_not() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/cases.json")).unwrap();
    let mut seen = BTreeSet::new();
    for case in &cases {
        assert!(seen.insert(&case.case), "{} stands there twice", case.case);
        assert!(!case.tests.is_empty() || !case.note.is_empty(), "{} has nothing", case.case);
        let missing: Vec<_> = case.tests.iter().filter(|test| !is_there(test)).collect();
        assert!(missing.is_empty(), "{}: no such tests: {missing:?}", case.case);
    }
    assert!(!cases.is_empty());
    assert!(!is_there("tests/cases.rs::no_such_test"), "the look can fail");
}
