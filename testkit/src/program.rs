//! What to run: a program with its arguments, environment and input.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Finished, Process};
use crate::{Terminal, binary_path, example_path};

/// A program to run as a child process; a recipe that may be used many times.
///
/// The child sees the test's environment without its `HOLDPOINT_*` variables, so that a test
/// means the same on every machine.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    pub(crate) input: Option<Vec<u8>>,
}

impl Program {
    /// The program at `path`; a bare name is looked up in `PATH`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new(), env: Vec::new(), folder: None, input: None }
    }

    /// The example `name`, see [`example_path`].
    #[must_use]
    pub fn example(name: &str) -> Self {
        Self::new(example_path(name))
    }

    /// The binary `name`, see [`binary_path`].
    #[must_use]
    pub fn binary(name: &str) -> Self {
        Self::new(binary_path(name))
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs the program in `folder` instead of the test's own.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Gives the program `input` on its standard input, which is empty otherwise.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Starts the program.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(&self) -> Process {
        Process::spawn(self)
    }

    /// Starts the program at a terminal of its own, 100 columns wide and 30 lines high.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn spawn_at_terminal(&self) -> Terminal {
        Terminal::spawn(self)
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or has not ended within `deadline`.
    #[must_use]
    pub fn run(&self, deadline: Duration) -> Finished {
        let mut process = self.spawn();
        let status = process.wait(deadline);
        Finished { status, stdout: process.stdout(), stderr: process.stderr() }
    }

    /// The name for messages: the last part of the path.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDPOINT_") {
                command.env_remove(name);
            }
        }
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}
