//! Lua scripts and SQL statements: each one is embedded somewhere and says what it is.

use std::collections::BTreeSet;

use super::fault::Fault;
use super::tree::Tree;

const SCRIPTS: &str = "storage/redis/src/scripts/";
const STATEMENTS: &str = "storage/sqlite/";

/// All scripts and all statements.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let embedded = tree.rust().flat_map(|(path, text)| embedded(path, text)).collect();
    let scripts = tree.under(SCRIPTS, ".lua");
    let statements = tree.under(STATEMENTS, ".sql");
    let mut faults = Vec::new();
    for (path, text) in scripts {
        faults.extend(unused(path, &embedded));
        faults.extend(lua_header(path, text));
    }
    for (path, text) in statements {
        faults.extend(unused(path, &embedded));
        faults.extend(sql_header(path, text));
    }
    faults
}

fn unused(path: &str, embedded: &BTreeSet<String>) -> Option<Fault> {
    let fix = "embed it with `include_str!(\"PATH\")`, the path in full, or delete it";
    (!embedded.contains(path)).then(|| Fault::new(path, 1, "nothing embeds it", fix))
}

/// A script declares its flags first; then it says what it guarantees, takes and answers.
fn lua_header(path: &str, text: &str) -> Vec<Fault> {
    let mut lines = text.lines();
    let mut faults = Vec::new();
    if !lines.next().is_some_and(|line| line.starts_with("#!lua")) {
        let fix = "begin with `#!lua` and its flags, or Redis checks memory only once";
        faults.push(Fault::new(path, 1, "no `#!lua` line", fix));
    }
    let header: Vec<&str> = lines.map_while(|line| line.strip_prefix("--")).collect();
    if !header.first().is_some_and(|line| is_prose(line)) {
        let fix = "say in comments from line 2 on what holds after the script has run";
        faults.push(Fault::new(path, 2, "the header names no guarantee", fix));
    }
    for word in ["KEYS", "ARGV", "Replies"] {
        if !header.iter().any(|line| line.contains(word)) {
            let what = format!("the header has no `{word}`");
            let fix = "list all of them in the comments below the first line, or say none";
            faults.push(Fault::new(path, 2, what, fix));
        }
    }
    faults
}

fn is_prose(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !["KEYS", "ARGV", "Replies"].iter().any(|word| line.starts_with(word))
}

fn sql_header(path: &str, text: &str) -> Option<Fault> {
    let is_good = text
        .strip_prefix("--")
        .is_some_and(|rest| rest.lines().next().is_some_and(|line| !line.trim().is_empty()));
    let fix = "begin with a `--` comment: what it does, and for whom";
    (!is_good).then(|| Fault::new(path, 1, "no header", fix))
}

/// The files that the Rust source `path` embeds as text.
fn embedded(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let argument = |rest: &str| {
        let quoted = rest.trim_start().strip_prefix('"')?;
        Some(quoted.split_once('"')?.0.to_owned())
    };
    let arguments = text.split("include_str!(").skip(1).filter_map(argument);
    arguments.map(|relative| normal(&format!("{folder}/{relative}"))).collect()
}

/// `path` without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "#!lua flags=allow-oom\n\
        -- Renews a lease if it is the newest one.\n\
        -- KEYS 1 the leases\n-- ARGV 1 the run\n-- Replies ok | fenced\nreturn 1\n";

    #[test]
    fn embedded_files_are_resolved_from_their_source() {
        let text = "const A: &str = include_str!(\"scripts/a.lua\");\n\
            const B: &str = include_str!(\n    \"../sql/./b.sql\"\n);";
        assert_eq!(embedded("x/src/lib.rs", text), ["x/src/scripts/a.lua", "x/sql/b.sql"]);
    }

    #[test]
    fn a_script_or_statement_that_nothing_embeds_is_found() {
        let lua = "storage/redis/src/scripts/renew.lua";
        let sql = "storage/sqlite/src/sql/renew.sql";
        let files = [(lua, GOOD), (sql, "-- Renews.\nSELECT 1;")];
        let paths = |tree| check(&tree).into_iter().map(|fault| fault.path).collect::<Vec<_>>();
        assert_eq!(paths(Tree::from(files)), [lua, sql]);
        let used = [
            files[0],
            files[1],
            ("storage/redis/src/a.rs", "include_str!(\"scripts/renew.lua\")"),
            ("storage/sqlite/src/a.rs", "include_str!(\"sql/renew.sql\")"),
        ];
        assert_eq!(paths(Tree::from(used)), [""; 0]);
    }

    #[test]
    fn a_script_needs_its_whole_header() {
        let check = |text: &str, expect: &[&str]| {
            let faults = lua_header("a.lua", text);
            let whats: Vec<&str> = faults.iter().map(|fault| fault.what.as_str()).collect();
            assert_eq!(whats, expect, "{text}");
        };
        check(GOOD, &[]);
        check(&GOOD.replace("#!lua", "--"), &["no `#!lua` line"]);
        check(&GOOD.replace("-- ARGV 1 the run\n", ""), &["the header has no `ARGV`"]);
        check(&GOOD.replace("-- Replies", "return 1 -- Replies"), &["the header has no `Replies`"]);
        let no_prose = GOOD.replace("-- Renews a lease if it is the newest one.\n", "");
        check(&no_prose, &["the header names no guarantee"]);
        assert_eq!(lua_header("a.lua", "return 1\n").len(), 5);
    }

    #[test]
    fn a_statement_needs_a_header() {
        let has_fault = |text| sql_header("a.sql", text).is_some();
        assert!(!has_fault("-- Claims the next run.\nSELECT 1;"));
        assert!(has_fault("SELECT 1;"));
        assert!(has_fault("--\nSELECT 1;"));
        assert!(has_fault(""));
    }
}
