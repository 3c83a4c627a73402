//! The bad-input catalogue: every input that the project promises to refuse, as data in
//! `tests/data/catalogue`, walked over the command line and the library on both stores.
//!
//! Each row must be refused with its stable code and exit status, in one line that names the field
//! and shows nothing raw and no secret; it must leave the store as it says, answer soon, and the
//! next good request must work. Rows of layers that are not there yet are counted, so that nothing
//! is missing in silence.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "catalogue/command_line.rs"]
mod command_line;
#[path = "catalogue/inputs.rs"]
mod inputs;
#[path = "catalogue/library.rs"]
mod library;
#[path = "catalogue/place.rs"]
mod place;
#[path = "catalogue/row.rs"]
mod row;
#[path = "catalogue/verdict.rs"]
mod verdict;

use std::{collections::BTreeMap, io::Write};

use row::{Face, Row, rows};
use verdict::Walked;

#[test]
fn the_catalogue_holds() {
    let rows = rows();
    let (command_line, library) = std::thread::scope(|scope| {
        let library = scope.spawn(|| library::walk(&rows));
        (command_line::walk(&rows), library.join().unwrap())
    });
    report(&rows, &command_line, &library);
    let faults: Vec<&String> = command_line.faults.iter().chain(&library.faults).collect();
    let list = faults.iter().map(|fault| format!("\n  {fault}")).collect::<String>();
    assert!(faults.is_empty(), "{} faults:{list}", faults.len());
}

/// A line past the test's captured output: what was walked, and what waits for what.
fn report(rows: &[Row], command_line: &Walked, library: &Walked) {
    let count = |face: Face| rows.iter().filter(|row| row.face == face && row.is_walked()).count();
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        if let Some(layer) = &row.waits_for {
            *waiting.entry(layer).or_default() += 1;
        }
    }
    let tested = rows.iter().filter(|row| !row.tests.is_empty()).count();
    let waiting = waiting.iter().map(|(layer, count)| format!("{layer} {count}"));
    let line = format!(
        "catalogue: {} of {} checks of {} library rows passed, {} of {} of {} command line rows \
         ({} answers took over 1 s); {tested} rows have tests of their own; waiting: {}\n",
        library.passed,
        library.checks,
        count(Face::Library),
        command_line.passed,
        command_line.checks,
        count(Face::Cli),
        command_line.slow + library.slow,
        waiting.collect::<Vec<_>>().join(", "),
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
