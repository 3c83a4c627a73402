//! What a `Cargo.toml` says about the dependencies of a member.

use toml::{Table, Value};

use super::fault::{Fault, numbered};

/// One member of the workspace.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The path of its `Cargo.toml`.
    pub(crate) path: String,
    /// Its name as ARCHITECTURE.md has it.
    pub(crate) name: String,
    /// What it links; dev-dependencies are not among it.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A package that a member links.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package; one of ours by its name in ARCHITECTURE.md.
    pub(crate) name: String,
    /// Whether it is a member of the workspace too.
    pub(crate) is_ours: bool,
    /// Where it stands.
    pub(crate) line: usize,
}

/// The paths of all members' manifests, from the manifest of the workspace.
pub(crate) fn members(workspace: &str) -> Option<Vec<String>> {
    let table: Table = workspace.parse().ok()?;
    let members = table.get("workspace")?.get("members")?.as_array()?;
    let path = |member: &Value| match member.as_str()? {
        "." => Some("Cargo.toml".to_owned()),
        folder => Some(format!("{folder}/Cargo.toml")),
    };
    members.iter().map(path).collect()
}

/// Reads a member's manifest.
pub(crate) fn parse(path: &str, text: &str) -> Result<Manifest, Fault> {
    let bad = |what: String| Fault::new(path, 1, what, "write a manifest that cargo can read");
    let table: Table = text.parse().map_err(|error| bad(format!("no TOML: {error}")))?;
    let name = table.get("package").and_then(|package| package.get("name"));
    let name = name.and_then(Value::as_str).ok_or_else(|| bad("no package name".to_owned()))?;
    Ok(Manifest {
        path: path.to_owned(),
        name: short(name).unwrap_or(name).to_owned(),
        dependencies: tables(&table).flat_map(|found| dependencies(text, found)).collect(),
    })
}

/// The tables whose packages are linked, with and without a condition on the target.
fn tables(manifest: &Table) -> impl Iterator<Item = &Table> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let conditional = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let holders = std::iter::once(manifest).chain(conditional);
    let linked = |holder| {
        let find = |kind: &str| Table::get(holder, kind).and_then(Value::as_table);
        ["dependencies", "build-dependencies"].map(find)
    };
    holders.flat_map(linked).flatten()
}

fn dependencies(text: &str, table: &Table) -> Vec<Dependency> {
    let dependency = |(key, value): (&String, &Value)| {
        let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
        let name = short(package);
        Dependency {
            name: name.unwrap_or(package).to_owned(),
            is_ours: name.is_some(),
            line: line_of(text, key),
        }
    };
    table.iter().map(dependency).collect()
}

/// The name that ARCHITECTURE.md has for a package of ours.
fn short(package: &str) -> Option<&str> {
    match package {
        "holdpoint" | "xtask" => Some(package),
        _ => package.strip_prefix("holdpoint-"),
    }
}

/// The first line after the head of the dependencies that sets `key`.
fn line_of(text: &str, key: &str) -> usize {
    let is_head = |line: &str| line.starts_with('[') && line.contains("dependencies");
    let sets =
        |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    let after = numbered(text).skip_while(|(_, line)| !is_head(line));
    after.filter(|(_, line)| sets(line)).map(|(number, _)| number).next().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_folder() {
        let text = "[workspace]\nmembers = [\".\", \"storage/redis\"]\n";
        assert_eq!(members(text).unwrap(), ["Cargo.toml", "storage/redis/Cargo.toml"]);
        assert_eq!(members("[workspace]\n"), None);
    }

    #[test]
    fn linked_packages_are_told_from_dev_dependencies() {
        let text = "[package]\nname = \"holdpoint-worker\"\n\
            [dependencies]\nholdpoint-graph.workspace = true\ntokio = \"1\"\n\
            other = { package = \"holdpoint-cli\", path = \"cli\" }\n\
            [target.'cfg(unix)'.dependencies]\nholdpoint.workspace = true\n\
            [build-dependencies]\nxtask = { path = \"xtask\" }\n\
            [dev-dependencies]\nholdpoint-testkit.workspace = true\n";
        let manifest = parse("worker/Cargo.toml", text).unwrap();
        assert_eq!(manifest.name, "worker");
        let mut found: Vec<(&str, bool, usize)> =
            manifest.dependencies.iter().map(|d| (d.name.as_str(), d.is_ours, d.line)).collect();
        found.sort_unstable();
        let expect = [
            ("cli", true, 6),
            ("graph", true, 4),
            ("holdpoint", true, 8),
            ("tokio", false, 5),
            ("xtask", true, 10),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn an_unreadable_manifest_is_a_fault() {
        assert!(parse("a/Cargo.toml", "[package").is_err());
        assert!(parse("a/Cargo.toml", "[package]\n").is_err());
    }
}
