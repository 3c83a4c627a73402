//! The Lua scripts: one file per transition, embedded here, with the shared blocks that each one
//! names put in front of it. A script is called by the hash of its text, so that an old and a new
//! version of this program run side by side.

#[cfg(feature = "planted")]
mod planted;

use std::collections::BTreeSet;

const LIB: &str = include_str!("scripts/lib.lua");
/// What comes first in every script: the prefix of the keys.
const PREFIX: &str = "local T = string.sub(KEYS[1], 1, -5)\n";
/// What comes next: whether the namespace is the one that the caller saw.
const FRAME: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n\
    return redis.error_reply('RESET the namespace is not the one it was')\n\
    end\n";

/// A script by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Append,
    Aside,
    Claim,
    Commit,
    Commits,
    DeleteSession,
    Depths,
    Enqueue,
    Follow,
    Fsck,
    Graphs,
    Init,
    Lost,
    Mend,
    Page,
    Partial,
    Partials,
    Prune,
    Questions,
    Read,
    Registry,
    Release,
    Renew,
    Session,
    Signal,
    StartNow,
    Stats,
    Tick,
    Types,
    Worker,
    Workers,
}

/// All scripts with their names and sources, in the order of [`Script`].
const SOURCES: [(&str, &str); 31] = [
    ("append", include_str!("scripts/append.lua")),
    ("aside", include_str!("scripts/aside.lua")),
    ("claim", include_str!("scripts/claim.lua")),
    ("commit", include_str!("scripts/commit.lua")),
    ("commits", include_str!("scripts/commits.lua")),
    ("delete_session", include_str!("scripts/delete_session.lua")),
    ("depths", include_str!("scripts/depths.lua")),
    ("enqueue", include_str!("scripts/enqueue.lua")),
    ("follow", include_str!("scripts/follow.lua")),
    ("fsck", include_str!("scripts/fsck.lua")),
    ("graphs", include_str!("scripts/graphs.lua")),
    ("init", include_str!("scripts/init.lua")),
    ("lost", include_str!("scripts/lost.lua")),
    ("mend", include_str!("scripts/mend.lua")),
    ("page", include_str!("scripts/page.lua")),
    ("partial", include_str!("scripts/partial.lua")),
    ("partials", include_str!("scripts/partials.lua")),
    ("prune", include_str!("scripts/prune.lua")),
    ("questions", include_str!("scripts/questions.lua")),
    ("read", include_str!("scripts/read.lua")),
    ("registry", include_str!("scripts/registry.lua")),
    ("release", include_str!("scripts/release.lua")),
    ("renew", include_str!("scripts/renew.lua")),
    ("session", include_str!("scripts/session.lua")),
    ("signal", include_str!("scripts/signal.lua")),
    ("start_now", include_str!("scripts/start_now.lua")),
    ("stats", include_str!("scripts/stats.lua")),
    ("tick", include_str!("scripts/tick.lua")),
    ("types", include_str!("scripts/types.lua")),
    ("worker", include_str!("scripts/worker.lua")),
    ("workers", include_str!("scripts/workers.lua")),
];

/// The scripts as the server gets them.
#[derive(Debug)]
pub(crate) struct Scripts(Vec<Loaded>);

#[derive(Debug)]
struct Loaded {
    text: String,
    hash: String,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        let texts = texts();
        #[cfg(feature = "planted")]
        let texts = planted::plant(texts, holdpoint_storage::Planted::at_work());
        let load = |text: String| {
            let hash = redis::Script::new(&text).get_hash().to_owned();
            Loaded { text, hash }
        };
        Self(texts.into_iter().map(load).collect())
    }

    /// The hash that calls the script.
    pub(crate) fn hash(&self, script: Script) -> &str {
        self.0.get(script as usize).map_or("", |loaded| &loaded.hash)
    }

    /// The texts to load.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|loaded| loaded.text.as_str())
    }
}

/// All scripts, in the order of [`Script`].
fn texts() -> Vec<String> {
    let blocks = blocks();
    SOURCES.iter().map(|(name, source)| assemble(name, source, &blocks)).collect()
}

/// A shared block: its name and its lines.
type Block = (&'static str, &'static str);

fn blocks() -> Vec<Block> {
    LIB.split("\n--@ ").skip(1).filter_map(|block| block.split_once('\n')).collect()
}

fn assemble(name: &str, source: &str, blocks: &[Block]) -> String {
    let (shebang, body) = source.split_once('\n').unwrap_or((source, ""));
    let mut needed = BTreeSet::new();
    need(body, blocks, &mut needed);
    let mut text = format!("{shebang}\n");
    text.push_str(PREFIX);
    // A commit looks at the sentinel only when it finds no run: a reset takes both.
    if !["init", "commit", "commits"].contains(&name) {
        text.push_str(FRAME);
    }
    for (_, block) in blocks.iter().filter(|(name, _)| needed.contains(name)) {
        push_code(&mut text, block);
    }
    push_code(&mut text, body);
    text
}

/// Comments are for readers of the repository; the server does without.
fn push_code(text: &mut String, code: &str) {
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("--")) {
        text.push_str(line);
        text.push('\n');
    }
}

/// Collects the blocks that `code` calls, and those that they call.
fn need(code: &str, blocks: &[Block], needed: &mut BTreeSet<&'static str>) {
    for (name, block) in blocks {
        if calls(code, name) && needed.insert(name) {
            need(block, blocks, needed);
        }
    }
}

/// Whether `code` has the name as a word, followed by what a call or a reference has.
fn calls(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "_.'".contains(c);
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && matches!(after, Some('(' | ',' | ')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_stands_at_its_place() {
        for (script, name) in [
            (Script::Append, "append"),
            (Script::Init, "init"),
            (Script::StartNow, "start_now"),
            (Script::Workers, "workers"),
        ] {
            assert_eq!(SOURCES[script as usize].0, name);
        }
        assert_eq!(Script::Workers as usize + 1, SOURCES.len());
    }

    #[test]
    fn a_script_gets_the_blocks_it_names_and_those_they_name() {
        let text = assemble("x", "#!lua\nenter(1, 2, 3)\n", &blocks());
        assert!(text.contains("local function enter("), "{text}");
        assert!(text.contains("local function wake("), "{text}");
        assert!(!text.contains("local function lose("), "{text}");
    }

    /// The highest argument that a script names outside of comments.
    fn used(source: &str, table: &str) -> usize {
        let code = source.lines().filter(|line| !line.trim_start().starts_with("--"));
        let text: String = code.map(|line| format!("{line}\n")).collect();
        let opening = format!("{table}[");
        let indexes = text
            .split(opening.as_str())
            .skip(1)
            .filter_map(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
        indexes.max().unwrap_or(0)
    }

    /// The numbers that a header gives to the arguments of a table, in their order.
    fn told(source: &str, table: &str) -> Vec<usize> {
        let header = source.lines().skip(1).map_while(|line| line.strip_prefix("-- "));
        let mut words = Vec::new();
        let mut is_inside = false;
        for line in header {
            if let Some(rest) = line.strip_prefix(table) {
                is_inside = true;
                words.extend(rest.split_whitespace());
            } else if is_inside && line.starts_with("  ") {
                words.extend(line.split_whitespace());
            } else {
                is_inside = false;
            }
        }
        let numbers = words.iter().filter_map(|word| word.parse::<usize>().ok());
        numbers.fold(Vec::new(), |mut told, n| {
            if n == told.len() + 1 {
                told.push(n);
            }
            told
        })
    }

    #[test]
    fn headers_name_all_keys_and_arguments() {
        for (name, source) in SOURCES {
            assert_eq!(told(source, "KEYS"), [1], "KEYS of {name}");
            let told = told(source, "ARGV").len();
            assert!(told >= used(source, "ARGV"), "ARGV of {name}: the header tells {told}");
            let lists = source.contains("#ARGV") || source.contains("unpack(ARGV");
            let uses_all = (1..=told).all(|n| n == 1 || source.contains(&format!("ARGV[{n}]")));
            assert!(uses_all || lists || name == "prune", "{name} does not use all it tells");
        }
    }

    /// What may run above the server's memory limit: what reads, and what lets work end or memory
    /// shrink. What brings work in must not.
    #[test]
    fn only_what_releases_may_run_in_a_full_store() {
        const BRING: [&str; 5] = ["claim", "enqueue", "partial", "registry", "start_now"];
        const READ: [&str; 10] = [
            "fsck",
            "graphs",
            "page",
            "partials",
            "questions",
            "read",
            "session",
            "stats",
            "types",
            "workers",
        ];
        for (name, source) in SOURCES {
            let expected = match (BRING.contains(&name), READ.contains(&name)) {
                (true, _) => "#!lua",
                (false, true) => "#!lua flags=no-writes,allow-oom",
                (false, false) => "#!lua flags=allow-oom",
            };
            assert_eq!(source.lines().next(), Some(expected), "{name}");
        }
    }

    #[test]
    fn each_script_has_a_frame_and_no_protected_writes() {
        for (name, source) in SOURCES {
            assert!(source.starts_with("#!lua"), "{name}");
            assert!(!source.contains("redis.pcall"), "{name} may stop half way");
            assert!(!source.contains("cjson"), "{name} reads what is opaque");
        }
    }
}
