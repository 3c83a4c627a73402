//! The rows as the data files have them, and what must hold of the files themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;

/// One input of one case by one way in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The case: `C01` to `C84`, `G1` to `G8`.
    pub(crate) case: String,
    /// The way in.
    pub(crate) face: Face,
    /// What it is.
    pub(crate) title: String,
    /// The layer that is not there yet.
    #[serde(default)]
    pub(crate) waits_for: Option<String>,
    /// Tests that have the row elsewhere, as `FILE::NAME`.
    #[serde(default)]
    pub(crate) tests: Vec<String>,
    /// Of the command line: the command. `$NAME` stands for what the place knows, `$TEXT` for
    /// the text.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// What stands on stdin, in pieces with their numbers of repeats.
    #[serde(default)]
    pub(crate) stdin: Option<Vec<(String, usize)>>,
    /// The long text of the arguments, in the same form.
    #[serde(default)]
    pub(crate) text: Option<Vec<(String, usize)>>,
    /// A configuration file that is named by the environment.
    #[serde(default)]
    pub(crate) config: Option<String>,
    /// More environment.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// A shell script in which `"$@"` is the command.
    #[serde(default)]
    pub(crate) shell: Option<String>,
    /// Whether a person reads the output: the command goes without `--json`.
    #[serde(default)]
    pub(crate) for_people: bool,
    /// The one place where the row makes sense; both stores when there is none.
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// Of the library: the name of what makes the input.
    #[serde(default)]
    pub(crate) input: String,
    /// The stable code; `failed(REASON)` of a run that ends so, empty when nothing is refused.
    #[serde(default)]
    pub(crate) code: String,
    /// The exit status.
    #[serde(default)]
    pub(crate) exit: i32,
    /// The field that the refusal names.
    #[serde(default)]
    pub(crate) field: String,
    /// What the answer must say.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// What becomes of the store.
    #[serde(default)]
    pub(crate) store: Store,
}

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Face {
    Cli,
    Library,
    Http,
    Storage,
    Schedule,
    GraphFile,
    ModelCall,
    ToolCall,
    ShellTool,
    OutgoingUrl,
    Webhook,
    ListenAddress,
}

/// What a row does to the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Store {
    /// It is refused before a store is looked at, and none is made.
    Unopened,
    /// Its dump is the same before and after.
    #[default]
    Unchanged,
    /// Something is stored: the input was taken, or a run failed.
    Changed,
}

impl Row {
    /// Whether the walk does it itself.
    pub(crate) fn is_walked(&self) -> bool {
        self.waits_for.is_none() && self.tests.is_empty()
    }

    /// The row in messages.
    pub(crate) fn name(&self) -> String {
        format!("{} {:?} {}", self.case, self.face, self.title)
    }

    fn check(&self) -> Result<(), String> {
        let is_cli = !self.args.is_empty();
        let ways = [self.waits_for.is_some(), !self.tests.is_empty(), is_cli];
        let ways = ways.into_iter().chain([!self.input.is_empty()]).filter(|way| *way).count();
        if ways != 1 {
            return Err("has none or several of args, input, tests and waits_for".to_owned());
        }
        if (is_cli && self.face != Face::Cli)
            || (!self.input.is_empty() && self.face != Face::Library)
        {
            return Err("has another face than its input".to_owned());
        }
        if self.is_walked() && self.says.is_empty() && self.exit != 0 {
            return Err("does not tell what its message says".to_owned());
        }
        self.tests.iter().try_for_each(|test| check_test(test))
    }
}

/// All rows, each sound by itself and no case without one.
pub(crate) fn rows() -> Vec<Row> {
    let files = [
        ("cli", include_str!("../data/catalogue/cli.json")),
        ("library", include_str!("../data/catalogue/library.json")),
        ("elsewhere", include_str!("../data/catalogue/elsewhere.json")),
        ("waiting", include_str!("../data/catalogue/waiting.json")),
    ];
    let mut rows = Vec::new();
    for (name, text) in files {
        let read: Vec<Row> =
            serde_json::from_str(text).unwrap_or_else(|fault| panic!("{name}.json: {fault}"));
        rows.extend(read);
    }
    let mut seen = BTreeSet::new();
    for row in &rows {
        assert!(seen.insert((&row.case, row.face, &row.title)), "{} stands twice", row.name());
        row.check().unwrap_or_else(|why| panic!("{} {why}", row.name()));
    }
    let cases = (1..=84).map(|number| format!("C{number:02}"));
    let cases: BTreeSet<String> = cases.chain((1..=8).map(|number| format!("G{number}"))).collect();
    let found: BTreeSet<String> = rows.iter().map(|row| row.case.clone()).collect();
    assert_eq!(found, cases, "every case has a row, and no row is of another");
    rows
}

/// A named test must be there, as a test.
fn check_test(test: &str) -> Result<(), String> {
    let (file, name) = test.split_once("::").ok_or_else(|| format!("{test} is no FILE::NAME"))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(file)).map_err(|why| format!("{file}: {why}"))?;
    let head = format!("fn {name}(");
    let before = text.split_once(&head).map(|(before, _)| before);
    let before = before.ok_or_else(|| format!("there is no test {test}"))?;
    // A property of the conformance suite is made a test by its macro, of each backend.
    let is_property = file.starts_with("storage/src/conformance/");
    let attributes = before.rsplit('\n').skip(1).take_while(|line| !line.trim().is_empty());
    let is_test = attributes
        .map(str::trim)
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    match is_test || is_property {
        true => Ok(()),
        false => Err(format!("{test} is no test")),
    }
}
