//! What flags, environment and configuration file come to: a flag goes before the environment,
//! the environment before the file, the file before the default.

use std::path::Path;

use holdpoint_graph::{Namespace, printable};
use serde::Deserialize;

use crate::{
    args::{Global, worker::Worker},
    failure::{Failure, Stop},
    place::without_secrets,
};

/// The store of whoever names none.
pub(crate) const STORE_DEFAULT: &str = "sqlite:holdpoint.db";

/// The configuration file: the names of the options.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    store: Option<String>,
    namespace: Option<String>,
    json: Option<bool>,
    log: Option<String>,
    accept_data_loss: Option<bool>,
    insecure_store: Option<bool>,
    instance: Option<String>,
    concurrency: Option<u64>,
    queues: Option<Vec<String>>,
    lease: Option<String>,
    drain: Option<String>,
    max_crashes: Option<u64>,
    no_supervisor: Option<bool>,
    exit_when_idle: Option<bool>,
}

/// What holds for this call.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The URL of the store.
    pub(crate) store: String,
    /// The namespace.
    pub(crate) namespace: Namespace,
    /// Whether stdout is for a program.
    pub(crate) is_json: bool,
    /// How much is said on stderr, when somebody said so.
    pub(crate) log: Option<String>,
    /// Whether a store that may lose data is used.
    pub(crate) accept_data_loss: bool,
    /// Whether a Redis on another host needs no password.
    pub(crate) insecure_store: bool,
    /// Where store and namespace are from.
    pub(crate) sources: [Source; 2],
    /// The instance that the namespace must be.
    pub(crate) instance: Option<String>,
    /// Whether another one is used all the same.
    pub(crate) join: bool,
    file: File,
}

impl Settings {
    /// Brings flags, environment and file together.
    ///
    /// # Errors
    /// Usage for a file that cannot be read or names what is no setting; `E_ID` for a namespace.
    pub(crate) fn new(global: &Global) -> Result<Self, Stop> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let path = global.config.as_deref().filter(|path| !path.as_os_str().is_empty());
        let file = path.map(read).transpose()?.unwrap_or_default();
        let shown = |store: &String| without_secrets(store);
        let (store, of_store) = Source::of("store", said(&global.store), &file.store, shown);
        let (namespace, of_namespace) =
            Source::of("namespace", said(&global.namespace), &file.namespace, |name| {
                printable(name, 128)
            });
        Ok(Self {
            store: store.unwrap_or_else(|| STORE_DEFAULT.to_owned()),
            namespace: Namespace::new(namespace.as_deref().unwrap_or("default"))?,
            insecure_store: global.insecure_store || file.insecure_store.unwrap_or(false),
            sources: [of_store, of_namespace],
            is_json: global.json || file.json.unwrap_or(false),
            log: said(&global.log).or_else(|| file.log.clone()),
            accept_data_loss: global.accept_data_loss || file.accept_data_loss.unwrap_or(false),
            instance: said(&global.instance).or_else(|| file.instance.clone()),
            join: global.join,
            file,
        })
    }

    /// Where store and namespace are from, on one line without secrets.
    pub(crate) fn provenance(&self) -> String {
        let shown = [without_secrets(&self.store), self.namespace.to_string()];
        let each = self.sources.iter().zip(shown).map(|(source, value)| source.says(&value));
        each.collect::<Vec<_>>().join("; ")
    }

    /// A worker's options, with those of the file where none was given.
    pub(crate) fn worker(&self, flags: &Worker) -> Worker {
        let file = &self.file;
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let queues = file.queues.as_ref().map(|queues| queues.join(","));
        Worker {
            concurrency: flags.concurrency.clone().or_else(|| number(file.concurrency)),
            queues: flags.queues.clone().or(queues),
            lease: flags.lease.clone().or_else(|| file.lease.clone()),
            drain: flags.drain.clone().or_else(|| file.drain.clone()),
            max_crashes: flags.max_crashes.clone().or_else(|| number(file.max_crashes)),
            no_supervisor: flags.no_supervisor || file.no_supervisor.unwrap_or(false),
            exit_when_idle: flags.exit_when_idle || file.exit_when_idle.unwrap_or(false),
        }
    }
}

/// Where a setting is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    name: &'static str,
    /// Who said it.
    by: &'static str,
    /// What the file says and does not hold.
    passed_over: Option<String>,
}

impl Source {
    /// The value that holds, and where it is from. A flag and the environment go before the file.
    fn of(
        name: &'static str,
        said: Option<String>,
        file: &Option<String>,
        shown: impl Fn(&String) -> String,
    ) -> (Option<String>, Self) {
        let by = match (&said, file) {
            (Some(_), _) => "a flag or the environment",
            (None, Some(_)) => "the configuration file",
            (None, None) => "the default",
        };
        let passed_over = file.as_ref().filter(|value| said.as_ref().is_some_and(|s| s != *value));
        let source = Self { name, by, passed_over: passed_over.map(shown) };
        (said.or_else(|| file.clone()), source)
    }

    fn says(&self, value: &str) -> String {
        let text = format!("{} is {value} by {}", self.name, self.by);
        match &self.passed_over {
            Some(other) => format!("{text}, before the configuration file's {other}"),
            None => text,
        }
    }
}

fn read(path: &Path) -> Result<File, Stop> {
    let bad = |why: String| Failure::usage("config", format!("config {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|fault| bad(fault.to_string()))?;
    let file: File = toml::from_str(&text).map_err(|fault| bad(why(&fault, &text)))?;
    if let Some((line, key)) = variable(&text) {
        let why = format!("line {line}: {key} holds ${{…}}, and variables are not filled in");
        return Err(Failure::usage("config", format!("config {}: {why}", path.display()))
            .with_fix(format!(
                "HOLDPOINT_STORE, HOLDPOINT_NAMESPACE or --{key} set it from outside"
            ))
            .into());
    }
    warn_of_secrets(path, &file);
    Ok(file)
}

/// The parser's message on one line, with the line and the key it is about; never the value, which
/// may be a secret.
fn why(fault: &toml::de::Error, text: &str) -> String {
    let start = fault.span().map_or(0, |span| span.start);
    let number = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    let key = text.lines().nth(number - 1).and_then(key_of);
    let key = key.map_or_else(String::new, |key| format!(" {key}:"));
    let message: Vec<&str> = fault.message().split_whitespace().collect();
    format!("line {number}:{key} {}", without_value(&message.join(" ")))
}

/// The key of a line of the file.
fn key_of(line: &str) -> Option<&str> {
    let key = line.split_once('=')?.0.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!key.is_empty() && key.len() <= 40 && key.chars().all(is_part)).then_some(key)
}

/// A message without the text that it quotes as the wrong value.
fn without_value(message: &str) -> String {
    let quote = "string \"";
    match (message.find(quote), message.rfind("\", expected ")) {
        (Some(from), Some(to)) if from + quote.len() <= to => {
            let (before, after) = (message.get(..from), message.get(to + 1..));
            format!("{}text{}", before.unwrap_or_default(), after.unwrap_or_default())
        }
        (Some(_), _) | (None, _) => message.to_owned(),
    }
}

/// The first line that means a variable to be filled in, and its key.
fn variable(text: &str) -> Option<(usize, &str)> {
    let mut lines = text.lines().zip(1..);
    lines.find_map(|(line, number)| {
        let is_comment = line.trim_start().starts_with('#');
        let key = key_of(line).filter(|_| !is_comment && line.contains("${"))?;
        Some((number, key))
    })
}

/// A password in a file that everybody may read is worth a word.
fn warn_of_secrets(path: &Path, file: &File) {
    use std::{io::Write, os::unix::fs::PermissionsExt};
    let has_secret = file.store.as_ref().is_some_and(|store| store.contains('@'));
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if has_secret && mode & 0o044 != 0 {
        let place = path.display();
        let text = format!("warning: {place} holds a password and others may read it: chmod 600");
        drop(writeln!(std::io::stderr().lock(), "{text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, global: Global) -> Result<Settings, Stop> {
        let folder =
            std::env::temp_dir().join(format!("holdpoint-settings-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = format!("{:?}.toml", std::thread::current().id()).replace(['(', ')'], "");
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let settings = Settings::new(&Global { config: Some(path.clone()), ..global });
        std::fs::remove_file(path).unwrap();
        settings
    }

    fn refused(text: &str) -> String {
        match settings(text, Global::default()) {
            Err(Stop::Failed(failure)) => {
                assert_eq!((failure.code.as_str(), failure.exit), ("E_USAGE", 2));
                failure.message.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flag_goes_before_the_file_and_the_file_before_the_default() {
        let text = "store = \"sqlite:file.db\"\nlease = \"2s\"\nconcurrency = 3\n";
        let flags = Global { store: Some("sqlite:flag.db".to_owned()), ..Global::default() };
        let with_flag = settings(text, flags).unwrap();
        assert_eq!(with_flag.store, "sqlite:flag.db");
        let without = settings(text, Global::default()).unwrap();
        assert_eq!(
            (without.store.as_str(), without.namespace.as_str()),
            ("sqlite:file.db", "default")
        );
        let worker = without.worker(&Worker { lease: Some("5s".to_owned()), ..Worker::default() });
        assert_eq!(worker.lease.as_deref(), Some("5s"));
        assert_eq!(worker.concurrency.as_deref(), Some("3"));
    }

    #[test]
    fn the_source_of_a_setting_is_told_without_secrets() {
        let text = "store = \"redis://:hidden@file\"\nnamespace = \"n\"\n";
        let flags = Global { store: Some("redis://:other@flag".to_owned()), ..Global::default() };
        assert_eq!(
            settings(text, flags).unwrap().provenance(),
            "store is redis://flag by a flag or the environment, before the configuration file's \
             redis://file; namespace is n by the configuration file"
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_told() {
        let text = refused("json = \"redis://:hidden@host\"");
        assert!(text.ends_with("line 1: json: invalid type: text, expected a boolean"), "{text}");
    }

    #[test]
    fn a_variable_is_refused_by_its_key() {
        let text = refused("# ${HOME}\nnamespace = \"n\"\nqueues = [\"${QUEUE}\"]");
        assert!(text.contains("line 3: queues holds ${"), "{text}");
    }

    #[test]
    fn what_is_no_setting_is_refused_by_name() {
        assert!(refused("store = 7").contains("line 1"));
        let text = refused("namespace = \"n\"\nstroe = \"x\"");
        assert!(text.contains("line 2") && text.contains("stroe"), "{text}");
    }
}
