//! The append-only file of a Redis, cut.

use std::fs;

use holdpoint_testkit::RedisServer;

use super::{CUTS, CUTS_LAST, Seen, is_sound, places, work};
use crate::{
    program,
    stage::{Backend, Stage},
};

/// All that a server holds, as one text, the same for equal contents.
const CONTENTS: &str = r"
local out = {}
local keys = redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local rows
  if kind == 'string' then rows = {redis.call('GET', key)}
  elseif kind == 'list' then rows = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then rows = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then rows = redis.call('SMEMBERS', key) table.sort(rows)
  elseif kind == 'hash' then
    local flat = redis.call('HGETALL', key)
    rows = {}
    for i = 1, #flat, 2 do rows[#rows + 1] = flat[i] .. ' ' .. flat[i + 1] end
    table.sort(rows)
  else error('there is no kind ' .. kind) end
  out[#out + 1] = key .. ' ' .. redis.sha1hex(table.concat(rows, '\n'))
end
return table.concat(out, '\n')";

pub(super) async fn play() {
    let mut stage = Stage::new(Backend::Redis).await;
    work(&stage).await;
    let redis = stage.redis.take().expect("the stage has a server");
    drop(stage);
    redis.kill_9();
    let path = redis.folder().join("appendonlydir/appendonly.aof.1.incr.aof");
    let whole = fs::read(&path).expect("the server has one file");
    let ends = transition_ends(&whole);
    let load = |cut: usize| {
        fs::write(&path, &whole[..cut]).expect("the file can be cut");
        redis.restart();
        let contents = redis.cli(&["EVAL", CONTENTS, "0"]);
        assert!(!contents.is_empty() || cut == 0, "{cut}: nothing is left");
        contents
    };
    let mut seen = Seen::default();
    let last = ends.len() - 2;
    for (n, pair) in ends.windows(2).enumerate() {
        let count = if n == last { CUTS_LAST } else { CUTS };
        let mut before = None;
        for cut in places(pair[0], pair[1], count) {
            let contents = load(cut);
            let before = before.get_or_insert_with(|| contents.clone());
            assert_eq!(*before, contents, "byte {cut} is inside of the transition {pair:?}");
            if cut == pair[0] {
                check(&redis).await;
            }
            seen.cuts += 1;
        }
        seen.transitions += 1;
    }
    assert_ne!(load(ends[last]), load(whole.len()), "the last transition does something");
    check(&redis).await;
    seen.told("append-only file");
}

async fn check(redis: &RedisServer) {
    let store = program::open(&redis.url()).await.expect("the store opens");
    is_sound(&*store).await;
}

/// Where whole transitions end: behind each transaction, and each command that is in none. The
/// first is the beginning of the namespace, before which there is nothing to open.
fn transition_ends(file: &[u8]) -> Vec<usize> {
    let (mut ends, mut at, mut is_inside) = (Vec::new(), 0, false);
    while at < file.len() {
        let (command, end) = command(file, at);
        at = end;
        match command.to_ascii_uppercase().as_slice() {
            b"MULTI" => is_inside = true,
            b"EXEC" => is_inside = false,
            b"SELECT" => continue,
            _ => {}
        }
        if !is_inside {
            ends.push(at);
        }
    }
    ends
}

/// The name of the command at a place, and where it ends: `*2`, then each part as `$3`, `SET`.
fn command(file: &[u8], at: usize) -> (Vec<u8>, usize) {
    let (parts, mut at) = number(file, at, b'*');
    let mut name = Vec::new();
    for part in 0..parts {
        let (length, start) = number(file, at, b'$');
        at = start + length + 2;
        if part == 0 {
            name = file[start..start + length].to_vec();
        }
    }
    (name, at)
}

fn number(file: &[u8], at: usize, mark: u8) -> (usize, usize) {
    assert_eq!(file[at], mark, "byte {at} begins no part of a command");
    let end = at + file[at..].iter().position(|byte| *byte == b'\r').expect("a line ends");
    let digits = std::str::from_utf8(&file[at + 1..end]).expect("a length is digits");
    (digits.parse().expect("a length is a number"), end + 2)
}
