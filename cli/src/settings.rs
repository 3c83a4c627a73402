//! What flags, environment and configuration file come to: a flag goes before the environment,
//! the environment before the file, the file before the default.

use std::path::Path;

use holdpoint_graph::Namespace;
use serde::Deserialize;

use crate::{
    args::{Global, worker::Worker},
    failure::{Failure, Stop},
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
        let namespace = said(&global.namespace).or_else(|| file.namespace.clone());
        let store = said(&global.store).or_else(|| file.store.clone());
        Ok(Self {
            store: store.unwrap_or_else(|| STORE_DEFAULT.to_owned()),
            namespace: Namespace::new(namespace.as_deref().unwrap_or("default"))?,
            is_json: global.json || file.json.unwrap_or(false),
            log: said(&global.log).or_else(|| file.log.clone()),
            accept_data_loss: global.accept_data_loss || file.accept_data_loss.unwrap_or(false),
            instance: said(&global.instance).or_else(|| file.instance.clone()),
            join: global.join,
            file,
        })
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

fn read(path: &Path) -> Result<File, Stop> {
    let bad = |why: String| Failure::usage("config", format!("config {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|fault| bad(fault.to_string()))?;
    let file: File = toml::from_str(&text).map_err(|fault| bad(why(&fault, &text)))?;
    warn_of_secrets(path, &file);
    Ok(file)
}

/// The parser's message on one line, with the line it is about; never the line itself, which may
/// hold a secret.
fn why(fault: &toml::de::Error, text: &str) -> String {
    let line = fault.span().and_then(|span| text.get(..span.start));
    let line = line.map_or(1, |before| before.matches('\n').count() + 1);
    let message: Vec<&str> = fault.message().split_whitespace().collect();
    format!("line {line}: {}", message.join(" "))
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
    fn what_is_no_setting_is_refused_by_name() {
        assert!(refused("store = 7").contains("line 1"));
        let text = refused("namespace = \"n\"\nstroe = \"x\"");
        assert!(text.contains("line 2") && text.contains("stroe"), "{text}");
    }
}
