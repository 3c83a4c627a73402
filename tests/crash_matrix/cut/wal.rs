//! The write-ahead log of an SQLite file, cut; what is behind the cut is nothing, or rubbish.

use std::{fs, path::Path};

use holdpoint_testkit::Scratch;
use rusqlite::{Connection, types::Value};

use super::{CUTS, Seen, is_sound, places, work};
use crate::{
    program,
    stage::{Backend, Stage},
};

/// The last transition is cut at every so many bytes.
const STEP: usize = 64;
/// Bytes of rubbish behind a cut: more than a frame.
const RUBBISH: usize = 5_000;
/// Bytes of the log's header, and of a frame's, behind which the page follows.
const HEADER: usize = 32;
const FRAME: usize = 24;

pub(super) async fn play() {
    let stage = Stage::new(Backend::Sqlite).await;
    let file = stage.scratch.file("holdpoint.db");
    let log_of = |file: &Path| file.with_extension("db-wal");
    // A reader from the beginning keeps all that follows in the log.
    let reader = Connection::open(&file).expect("the file opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master").expect("a read begins");
    let begin = fs::read(log_of(&file)).expect("the log can be read").len();
    work(&stage).await;
    let (data, log) = (fs::read(&file), fs::read(log_of(&file)));
    let (data, log) = (data.expect("the file can be read"), log.expect("the log can be read"));
    drop((reader, stage));

    let put = |scratch: &Scratch, cut: usize, tail: &[u8]| {
        let file = scratch.file("cut.db");
        fs::write(&file, &data).expect("a new file");
        fs::write(log_of(&file), [&log[..cut], tail].concat()).expect("a new file");
        file
    };
    let load = |cut: usize, tail: &[u8]| contents(&put(&Scratch::new(), cut, tail));
    let ends: Vec<usize> = transition_ends(&log).into_iter().filter(|at| *at >= begin).collect();
    let mut seen = Seen::default();
    let last = ends.len() - 2;
    for (n, pair) in ends.windows(2).enumerate() {
        let count = if n == last { (pair[1] - pair[0]) / STEP } else { CUTS };
        let mut before = None;
        for cut in places(pair[0], pair[1], count) {
            // Rubbish that has no byte right; by chance the last one missing might be.
            let rubbish: Vec<u8> = log[cut..].iter().take(RUBBISH).map(|byte| !byte).collect();
            for tail in [&[][..], &rubbish] {
                let contents = load(cut, tail);
                let before = before.get_or_insert_with(|| contents.clone());
                assert!(*before == contents, "byte {cut} is inside of the transition {pair:?}");
                seen.cuts += 1;
            }
        }
        let scratch = Scratch::new();
        let url = format!("sqlite:{}", put(&scratch, pair[0], &[]).display());
        is_sound(&*program::open(&url).await.expect("the store opens")).await;
        seen.transitions += 1;
    }
    let is_changed = load(ends[last], &[]) != load(ends[last + 1], &[]);
    assert!(is_changed, "the last transition does something");
    seen.told("write-ahead log");
}

/// All rows of a sound file.
fn contents(file: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let read = || -> rusqlite::Result<_> {
        let conn = Connection::open(file)?;
        // What the end of this connection does to the file need not last.
        conn.pragma_update(None, "synchronous", "OFF")?;
        let said: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        assert_eq!(said, "ok");
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
        let tables: Vec<String> =
            conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let rows = |table: String| -> rusqlite::Result<_> {
            let mut all = conn.prepare(&format!("SELECT * FROM {table}"))?;
            let columns = all.column_count();
            let row = |row: &rusqlite::Row<'_>| (0..columns).map(|n| row.get(n)).collect();
            let rows = all.query_map([], row)?.collect::<Result<_, _>>()?;
            Ok((table, rows))
        };
        tables.into_iter().map(rows).collect()
    };
    read().expect("the file can be read")
}

/// Where whole transactions end: behind each frame that says how large the file is now.
fn transition_ends(log: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let frame = FRAME + word(8) as usize;
    let is_of_this_log = |at: &usize| log[at + 8..at + 16] == log[16..24];
    (HEADER..)
        .step_by(frame)
        .take_while(|at| at + frame <= log.len())
        .take_while(is_of_this_log)
        .filter(|at| word(at + 4) > 0)
        .map(|at| at + frame)
        .collect()
}
