//! The edges of small made-up workspaces.

use super::*;

const ROOT: &str = "[workspace]\nmembers = [\"graph\", \"worker\"]\n";
const DOCUMENT_TEXT: &str = "\
# Parts

```edges
graph ->
worker -> graph
```

```homes
apalis -> worker
tokio -> worker
```
";

/// The faults of a workspace of two, without their fixes.
fn faults(document: &str, graph: &str, worker: &str) -> Vec<String> {
    let manifest = |name, rest| format!("[package]\nname = \"holdpoint-{name}\"\n{rest}");
    let tree = Tree::from([
        (WORKSPACE, ROOT),
        (DOCUMENT, document),
        ("graph/Cargo.toml", &manifest("graph", graph)),
        ("worker/Cargo.toml", &manifest("worker", worker)),
    ]);
    let shown = |fault: Fault| format!("{}:{}: {}", fault.path, fault.line, fault.what);
    check(&tree).into_iter().map(shown).collect()
}

#[test]
fn allowed_links_pass() {
    let worker =
        "[dependencies]\nholdpoint-graph.workspace = true\napalis = \"1\"\nserde = \"1\"\n";
    assert_eq!(faults(DOCUMENT_TEXT, "[dependencies]\nserde = \"1\"\n", worker), [""; 0]);
}

#[test]
fn a_link_against_the_arrow_is_found() {
    let graph = "[dependencies]\nserde = \"1\"\nholdpoint-worker.workspace = true\n";
    let expect = ["graph/Cargo.toml:5: ARCHITECTURE.md has no edge graph -> worker"];
    assert_eq!(faults(DOCUMENT_TEXT, graph, ""), expect);
}

#[test]
fn a_foreign_package_away_from_home_is_found() {
    let graph = "[dependencies]\ntokio.workspace = true\n[dev-dependencies]\napalis = \"1\"\n";
    let expect = ["graph/Cargo.toml:4: tokio has no home in graph"];
    assert_eq!(faults(DOCUMENT_TEXT, graph, ""), expect);
}

#[test]
fn testkit_belongs_to_tests() {
    let link = "holdpoint-testkit.workspace = true\n";
    let as_test = format!("[dev-dependencies]\n{link}");
    assert_eq!(faults(DOCUMENT_TEXT, "", &as_test), [""; 0]);
    let as_part = format!("[dependencies]\n{link}");
    let expect = ["worker/Cargo.toml:4: worker links testkit, which only tests may use"];
    assert_eq!(faults(DOCUMENT_TEXT, "", &as_part), expect);
}

#[test]
fn the_document_names_the_members() {
    let without = DOCUMENT_TEXT.replace("graph ->\n", "");
    assert_eq!(faults(&without, "", ""), ["ARCHITECTURE.md:3: no row for graph"]);
    let with = DOCUMENT_TEXT.replace("graph ->\n", "graph ->\nserver -> graph\n");
    assert_eq!(faults(&with, "", ""), ["ARCHITECTURE.md:5: server is no member"]);
    let away = DOCUMENT_TEXT.replace("tokio -> worker", "tokio -> server");
    assert_eq!(faults(&away, "", ""), ["ARCHITECTURE.md:10: server is no member"]);
}

#[test]
fn the_edges_make_no_circle() {
    let circle = DOCUMENT_TEXT.replace("graph ->\n", "graph -> worker\n");
    let expect =
        ["ARCHITECTURE.md:4: graph reaches itself", "ARCHITECTURE.md:5: worker reaches itself"];
    assert_eq!(faults(&circle, "", ""), expect);
}

#[test]
fn missing_blocks_and_unreadable_rows_are_found() {
    let expect = ["ARCHITECTURE.md:1: no block `edges`", "ARCHITECTURE.md:1: no block `homes`"];
    assert_eq!(faults("", "", ""), expect);
    let bad = DOCUMENT_TEXT.replace("graph ->", "graph");
    assert_eq!(faults(&bad, "", ""), ["ARCHITECTURE.md:4: cannot read `graph`"]);
}
