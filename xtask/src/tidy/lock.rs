//! Packages that must not come into the build, however deep.

use super::fault::{Fault, numbered};
use super::tree::Tree;

const LOCK: &str = "Cargo.lock";
/// The one package that links the bundled SQLite.
const SQLITE: &str = "libsqlite3-sys";

/// No second way to SQLite: only one package may link it, and ours is rusqlite's.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    match tree.text(LOCK) {
        Some(text) => packages(text),
        None => vec![Fault::new(LOCK, 1, "it is missing", "run `cargo generate-lockfile`")],
    }
}

fn packages(text: &str) -> Vec<Fault> {
    let name = |line: &'_ str| -> Option<String> {
        Some(line.strip_prefix("name = \"")?.strip_suffix('"')?.to_owned())
    };
    let named = numbered(text).filter_map(|(number, line)| Some((number, name(line)?)));
    let mut sqlites = 0;
    let mut faults = Vec::new();
    for (number, name) in named {
        sqlites += usize::from(name == SQLITE);
        if name == "sqlx" || name.starts_with("sqlx-") {
            let what = format!("{name} is in the build");
            let fix = "drop the dependency that brings it (`cargo tree -i`); SQL goes by rusqlite";
            faults.push(Fault::new(LOCK, number, what, fix));
        }
        if name == SQLITE && sqlites > 1 {
            let fix = "drop the dependency that brings the other one (`cargo tree -i`)";
            faults.push(Fault::new(LOCK, number, format!("a second {SQLITE}"), fix));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::fault::lines_of;
    use super::*;

    #[test]
    fn sqlx_and_a_second_sqlite_are_found() {
        let check = |names: &[&str], expect: &[usize]| {
            let text = names.iter().map(|name| format!("name = \"{name}\"\n")).collect::<String>();
            assert_eq!(lines_of(&packages(&text)), expect, "{names:?}");
        };
        check(&["rusqlite", "libsqlite3-sys", "my-sqlx"], &[]);
        check(&["sqlx-core", "tokio", "sqlx"], &[1, 3]);
        check(&["libsqlite3-sys", "libsqlite3-sys"], &[2]);
    }
}
