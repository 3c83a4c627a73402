//! A program that runs: its output so far, signals to it, and its end.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::lines::complete_lines;
use crate::scratch::temp_folder;
use crate::until::{Deadline, pause};
use crate::{Program, Signal, signal};

/// A running child process, its output in files.
///
/// It leads a process group of its own, and dropping the value kills that whole group: also the
/// children of a supervisor that was killed before.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: TempDir,
}

impl Process {
    pub(crate) fn spawn(program: &Program) -> Self {
        let output = temp_folder();
        let create =
            |name| File::create(output.path().join(name)).expect("a new file in our folder");
        let stdin = match &program.input {
            Some(input) => stdin_file(output.path(), input),
            None => Stdio::null(),
        };
        let child = program
            .command()
            .stdin(stdin)
            .stdout(create("stdout"))
            .stderr(create("stderr"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.name()));
        Self { name: program.name(), child, output }
    }

    /// The process id, which is also the id of its group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, or `None` while it runs.
    ///
    /// # Panics
    ///
    /// When the system cannot tell.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of our own child")
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    ///
    /// When it still runs after `deadline`; the message shows what it said on stderr.
    #[track_caller]
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let end = Deadline::after(deadline);
        loop {
            if let Some(status) = self.status() {
                return status;
            }
            if end.has_passed() {
                panic!("{} still runs after {deadline:?}; stderr:\n{}", self.name, self.stderr());
            }
            pause();
        }
    }

    /// Sends `signal` to the process alone.
    pub fn signal(&mut self, signal: Signal) {
        signal::send(&mut self.child, signal);
    }

    /// Sends `signal` to the process and all that descends from it, as a machine's death would.
    pub fn signal_group(&mut self, signal: Signal) {
        signal::send_to_group(&self.child, signal);
    }

    /// `kill -9` of the process alone, and waits for its end; its children live on.
    ///
    /// # Panics
    ///
    /// When the end cannot be waited for.
    pub fn kill_9(&mut self) -> ExitStatus {
        self.signal(Signal::Kill);
        self.child.wait().expect("our own child can be waited for")
    }

    /// `kill -9` of the process and all that descends from it, and waits for its end.
    ///
    /// # Panics
    ///
    /// When the end cannot be waited for.
    pub fn kill_9_group(&mut self) -> ExitStatus {
        self.signal_group(Signal::Kill);
        self.child.wait().expect("our own child can be waited for")
    }

    /// Freezes the process.
    pub fn sigstop(&mut self) {
        self.signal(Signal::Stop);
    }

    /// Lets a frozen process go on.
    pub fn sigcont(&mut self) {
        self.signal(Signal::Continue);
    }

    /// Asks the process to end.
    pub fn sigterm(&mut self) {
        self.signal(Signal::Terminate);
    }

    /// What the process has written to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    /// What the process has written to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// The complete lines of stdout so far, each one JSON value.
    ///
    /// # Panics
    ///
    /// When a complete line is not JSON.
    #[must_use]
    pub fn json_lines(&self) -> Vec<Value> {
        complete_lines(&self.stdout(), "stdout")
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.output.path().join(name)).expect("a file we created");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        signal::send_to_group(&self.child, Signal::Kill);
        let _reaped = self.child.wait();
    }
}

/// A program that has ended, and all it said.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to stdout.
    pub stdout: String,
    /// All it wrote to stderr.
    pub stderr: String,
}

impl Finished {
    /// The exit code; `None` when a signal ended the program.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Insists on the exit code `code`.
    ///
    /// # Panics
    ///
    /// When the program ended otherwise; the message shows its output.
    #[track_caller]
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        let Self { status, stdout, stderr } = &self;
        assert_eq!(status.code(), Some(code), "{status}\nstdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }

    /// The complete lines of stdout, each one JSON value.
    ///
    /// # Panics
    ///
    /// When a complete line is not JSON.
    #[must_use]
    pub fn json_lines(&self) -> Vec<Value> {
        complete_lines(&self.stdout, "stdout")
    }

    /// The whole of stdout as one JSON value.
    ///
    /// # Panics
    ///
    /// When it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("not JSON: {error}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr)
        })
    }
}

/// `input` as something a child can read; a file, so that nobody has to feed a pipe.
fn stdin_file(folder: &Path, input: &[u8]) -> Stdio {
    let path = folder.join("stdin");
    std::fs::write(&path, input).expect("a new file in our folder");
    File::open(&path).expect("the file just written").into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::until;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    #[test]
    fn output_and_exit_code_are_kept_apart() {
        let finished = shell("echo out; echo talk >&2; exit 3").run(SOON).expect_code(3);
        assert_eq!(finished.stdout, "out\n");
        assert_eq!(finished.stderr, "talk\n");
    }

    #[test]
    fn input_arguments_and_environment_arrive() {
        let program = shell("cat; echo $1 $NAME; pwd").args(["zero", "one"]).env("NAME", "value");
        let finished = program.stdin("in ").current_dir("/").run(SOON);
        assert_eq!(finished.stdout, "in one value\n/\n");
    }

    #[test]
    fn json_is_read_by_line_and_as_a_whole() {
        let finished = shell(r#"echo '{"a":1}'; echo '{"a":2}'; printf '{"a"'"#).run(SOON);
        assert_eq!(finished.json_lines().len(), 2);
        assert_eq!(shell("echo [1]").run(SOON).json()[0], 1);
    }

    #[test]
    fn a_killed_process_reports_the_signal() {
        let mut process = shell("exec sleep 1000").spawn();
        assert_eq!(process.kill_9().signal(), Some(9));
        process.sigcont();
    }

    #[test]
    fn sigterm_can_be_handled() {
        let mut process = shell("trap 'exit 7' TERM; echo ready; while :; do :; done").spawn();
        until("the trap", SOON, || process.stdout().contains("ready").then_some(()));
        process.sigterm();
        assert_eq!(process.wait(SOON).code(), Some(7));
    }

    #[test]
    fn a_stopped_process_goes_on_when_continued() {
        let mut process = shell("while :; do echo x; done").spawn();
        until("the first output", SOON, || (!process.stdout().is_empty()).then_some(()));
        process.sigstop();
        let stat = format!("/proc/{}/stat", process.pid());
        let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
        until("the stop", SOON, || is_stopped().then_some(()));
        let before = process.stdout().len();
        process.sigcont();
        until("more output", SOON, || (process.stdout().len() > before).then_some(()));
    }

    /// A supervisor that was killed leaves its child behind; the test must not.
    #[test]
    fn dropping_kills_the_orphans_too() {
        let mut process = shell("sleep 1000 & echo $!; wait").spawn();
        let child = until("the child's id", SOON, || process.stdout().trim().parse::<u32>().ok());
        process.kill_9();
        assert!(is_alive(child));
        drop(process);
        until("the orphan's end", SOON, || (!is_alive(child)).then_some(()));
    }

    fn is_alive(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}
