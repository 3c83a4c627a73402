//! What workers say in their logs and write into no history: runs that they gave up because they
//! could not renew in time, and commits of theirs that were refused as stale.

use std::{fs, path::Path};

use anyhow::Result;
use holdpoint_producer::parse_time;
use holdpoint_storage::{Clock as _, SystemClock};
use holdpoint_torture_check::{Line, Op, Phase, mono_ns};

/// What is said, and its code in the history.
const SAID: [(&str, &str); 3] = [
    ("outcome=Fenced", "gave_up"),
    ("gave the run up: its last commit was not taken", "gave_up"),
    ("a commit was refused as stale", "E_FENCED"),
];

/// All logs in the folder, by the name of the file.
pub(crate) fn read(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
        logs.push((entry.file_name().to_string_lossy().into_owned(), text));
    }
    Ok(logs)
}

/// The lines of a history that these logs are worth.
pub(crate) fn lines(logs: &[(String, String)]) -> Vec<Line> {
    // The clocks of one machine are as far apart as they are now.
    let ahead = i128::from(SystemClock.wall_us()) * 1_000 - i128::from(mono_ns());
    let of_log = |(name, text): &(String, String)| {
        let lines = text.lines().filter_map(|line| said(line, ahead));
        lines.map(|line| Line { process: name.clone(), ..line }).collect::<Vec<_>>()
    };
    logs.iter().flat_map(of_log).collect()
}

fn said(text: &str, ahead: i128) -> Option<Line> {
    let (_, code) = SAID.iter().find(|(said, _)| text.contains(said))?;
    let run = text.split(' ').find_map(|word| word.strip_prefix("run="))?;
    let wall = parse_time("at", text.split(' ').next()?).ok()?;
    let mono = u64::try_from(i128::from(wall) * 1_000_000 - ahead).ok()?;
    let line = Line::now(Op::Worker, Phase::Ok, *code).run(run).code(*code);
    Some(Line { wall, mono, ..line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_given_up_becomes_a_line() {
        let text = "2026-11-30T20:20:38.401785Z DEBUG claim ended run=p2-9-00002 outcome=Fenced\n\
                    2026-11-30T20:20:39Z DEBUG claim ended run=r outcome=Parked\n";
        let found = lines(&[("worker-1.log".to_owned(), text.to_owned())]);
        let [line] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (line.code.as_deref(), line.run.as_deref()),
            (Some("gave_up"), Some("p2-9-00002"))
        );
        assert_eq!(line.wall, 1_796_070_038_401);
    }
}
