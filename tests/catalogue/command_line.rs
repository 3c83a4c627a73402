//! The rows of the command line: real processes on stores in which there is something to be in
//! conflict with.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use holdpoint::{Clock, SystemClock};
use holdpoint_testkit::{Finished, Program, Scratch, example_path};
use serde_json::Value;

use crate::{
    place::Place,
    row::{Face, Row, Store},
    verdict::{Walked, check_says, check_text},
};

/// How long a command may take before the walk gives up on it.
const COMMAND: Duration = Duration::from_secs(60);
/// Commands at once.
const AT_ONCE: usize = 4;

/// Walks the rows: first those that change nothing, some at once, then the others in order.
pub(crate) fn walk(rows: &[Row]) -> Walked {
    let rows: Vec<&Row> = rows.iter().filter(|r| r.face == Face::Cli && r.is_walked()).collect();
    let places = places();
    let _lock = places.iter().find(|place| place.name == "locked sqlite").map(Place::lock);
    let before: Vec<String> = places.iter().map(Place::dump).collect();
    let jobs = places.iter().zip(&before).flat_map(|(place, before)| {
        let fits = move |row: &&&Row| row.store != Store::Changed && is_for(row, place);
        rows.iter().filter(fits).map(move |row| (place, *row, before))
    });
    let jobs = Mutex::new(jobs.collect::<Vec<_>>().into_iter());
    let walk = || {
        let mut walked = Walked::default();
        loop {
            let Some((place, row, before)) = jobs.lock().unwrap().next() else { return walked };
            let since = SystemClock.monotonic();
            let (verdict, end) = check(place, row);
            let verdict = verdict.and_then(|()| match place.dump() == *before {
                true => Ok(()),
                false => Err("the store changed, by this row or one beside it".to_owned()),
            });
            walked.add(&format!("{} on {}", row.name(), place.name), verdict, end - since);
        }
    };
    let mut walked = std::thread::scope(|scope| {
        let walks: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(walk)).collect();
        walks.into_iter().map(|walk| walk.join().unwrap()).fold(Walked::default(), Walked::and)
    });
    for place in &places {
        for row in rows.iter().filter(|r| r.store == Store::Changed && is_for(r, place)) {
            let (before, since) = (place.dump(), SystemClock.monotonic());
            let (verdict, end) = check(place, row);
            let verdict = verdict.and_then(|()| match place.dump() == before {
                true => Err("nothing was stored".to_owned()),
                false => Ok(()),
            });
            walked.add(&format!("{} on {}", row.name(), place.name), verdict, end - since);
        }
        if place.name == "sqlite" || place.name == "redis" {
            assert_eq!(place.json(&["enqueue", "lin"])["created"], true, "the next good one works");
            place.work();
        }
    }
    walked
}

/// Whether a row is walked in a place. One that opens no store needs to be walked once only.
fn is_for(row: &Row, place: &Place) -> bool {
    match (&row.place, row.store) {
        (Some(name), _) => name == place.name,
        (None, Store::Unopened) => place.name == "sqlite",
        (None, Store::Unchanged | Store::Changed) => matches!(place.name, "sqlite" | "redis"),
    }
}

/// The places: both stores, and stores that take nothing.
fn places() -> Vec<Place> {
    let mut places = vec![
        Place::sqlite("sqlite"),
        Place::redis("redis"),
        Place::redis("full redis"),
        Place::redis("redis without replicas"),
        Place::sqlite("locked sqlite"),
    ];
    std::thread::scope(|scope| {
        for place in &mut places {
            scope.spawn(|| place.prepare());
        }
    });
    let set = |place: &str, setting: &str, value: &str| {
        let place = places.iter().find(|known| known.name == place);
        let redis = place.and_then(|place| place.redis.as_ref()).unwrap();
        assert_eq!(redis.cli(&["CONFIG", "SET", setting, value]).trim(), "OK");
    };
    set("full redis", "maxmemory", "1kb");
    set("redis without replicas", "min-replicas-to-write", "1");
    places
}

fn text(pieces: &[(String, usize)]) -> String {
    pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect()
}

/// The command of a row on a place.
fn command(place: &Place, row: &Row, own: &Scratch) -> Program {
    let long = row.text.as_deref().map(text).unwrap_or_default();
    let args = row.args.iter().map(|arg| {
        let known = place.names.iter().chain([(&"TEXT", &long)]);
        known.fold(arg.clone(), |arg, (name, value)| arg.replace(&format!("${name}"), value))
    });
    let json = if row.for_people { &[][..] } else { &["--json"] };
    let json = json.iter().map(|arg| (*arg).to_owned());
    let mut program = match &row.shell {
        None => place.program().args(json.chain(args)),
        Some(script) => {
            let fixtures = example_path("fixtures").display().to_string();
            let script = ["-o", "pipefail", "-c", script, "bash"].map(str::to_owned);
            let args = script.into_iter().chain([fixtures]).chain(json).chain(args);
            place.on_this(Program::new("bash")).args(args)
        }
    };
    if let Some(config) = &row.config {
        let file = own.file("holdpoint.toml");
        std::fs::write(&file, config).unwrap();
        program = program.env("HOLDPOINT_CONFIG", &file);
    }
    if row.store == Store::Unopened {
        program = program.env("HOLDPOINT_STORE", own.sqlite_url());
    }
    for (name, value) in &row.env {
        program = program.env(name, value);
    }
    if let Some(stdin) = &row.stdin {
        program = program.stdin(text(stdin));
    }
    program
}

/// Runs a row; says what does not hold, and when the answer was there.
fn check(place: &Place, row: &Row) -> (Result<(), String>, Instant) {
    let own = Scratch::new();
    let done = command(place, row, &own).run(COMMAND);
    let end = SystemClock.monotonic();
    let verdict = judge(row, &done).and_then(|()| match own.file("holdpoint.db").exists() {
        true => Err("a store was made".to_owned()),
        false => Ok(()),
    });
    (verdict.map_err(|why| format!("{why}\n    {}", shown(&done))), end)
}

fn shown(done: &Finished) -> String {
    let clip = |text: &str| text.chars().take(1_500).collect::<String>();
    format!("{} stdout: {:?} stderr: {:?}", done.status, clip(&done.stdout), clip(&done.stderr))
}

fn judge(row: &Row, done: &Finished) -> Result<(), String> {
    if done.code() != Some(row.exit) {
        return Err(format!("ended with {:?}, not {}", done.code(), row.exit));
    }
    if done.stderr.contains("panicked") {
        return Err("it panicked".to_owned());
    }
    done.stdout.lines().chain(done.stderr.lines()).try_for_each(check_line)?;
    if row.code.is_empty() {
        return check_says(&format!("{}{}", done.stdout, done.stderr), &row.says);
    }
    let first = done.stderr.lines().find(|line| line.starts_with("error"));
    let head = format!("error[{}]: ", row.code);
    let message = first.and_then(|line| line.strip_prefix(head.as_str()));
    let message = message.ok_or_else(|| format!("no line begins with {head:?}"))?;
    check_text(message)?;
    check_says(message, &row.says)?;
    if row.for_people {
        return Ok(());
    }
    let last = done.stderr.lines().last().unwrap_or_default();
    let error: Value = serde_json::from_str(last).map_err(|_| "no JSON error".to_owned())?;
    let error = &error["error"];
    let got = (error["code"].as_str(), error["field"].as_str().unwrap_or_default());
    if got != (Some(row.code.as_str()), row.field.as_str()) {
        return Err(format!("the JSON error names {got:?}, not the field {:?}", row.field));
    }
    match error["message"].as_str() == Some(message) {
        true => Ok(()),
        false => Err(format!("the JSON error says something else: {error}")),
    }
}

/// A line of output shows nothing raw and no secret, however long it is.
fn check_line(line: &str) -> Result<(), String> {
    let chars: Vec<char> = line.chars().collect();
    chars.chunks(500).try_for_each(|part| check_text(&part.iter().collect::<String>()))
}
