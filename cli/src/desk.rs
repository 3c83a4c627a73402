//! What a program does with its graphs when it is called without a command.

use std::{fmt, future::Future, io::IsTerminal, sync::Arc};

use holdpoint_graph::Refusal;
use holdpoint_producer::{GateFilter, GateRow, Producer, ProducerError, SignalOptions};
use holdpoint_storage::StoreError;
use holdpoint_worker::Shutdown;

use crate::{
    args, commands,
    context::Context,
    failure::{Failure, Stop},
    input, show,
};

/// The exit code of a program that a signal ended before it was done.
const EXIT_INTERRUPTED: u8 = 130;

/// A store, a producer over it and the program's graphs: for the action of
/// [`App::with_default`](crate::App::with_default).
pub struct Desk {
    context: Context,
    producer: Producer,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("producer", &self.producer).finish_non_exhaustive()
    }
}

impl Desk {
    pub(crate) fn new(context: Context, producer: Producer) -> Self {
        Self { context, producer }
    }

    /// The producer over the program's store.
    #[must_use]
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// Prints one line on stdout.
    ///
    /// # Errors
    /// When stdout takes nothing more.
    pub fn say(&self, text: impl fmt::Display) -> anyhow::Result<()> {
        Ok(self.context.out.line(text)?)
    }

    /// Whether somebody sits at the terminal and can be asked.
    #[must_use]
    pub fn has_person(&self) -> bool {
        !self.context.out.is_json && std::io::stdin().is_terminal()
    }

    /// Runs the program's graphs in this process until nothing is left to do, and prints what
    /// happens. Parked runs wait for answers and are nothing to do.
    ///
    /// # Errors
    /// When the worker cannot go on.
    pub async fn work(&self) -> anyhow::Result<()> {
        let flags = self.flags(true);
        let store = Arc::clone(self.producer.store());
        let work = commands::work_here(&self.context, store, &flags, Shutdown::new());
        Ok(Box::pin(work).await?)
    }

    /// Runs the program's graphs in this process for as long as `action` takes, and prints what
    /// happens: `action` may wait for a reminder, a deadline, or somebody's answer from elsewhere.
    ///
    /// # Errors
    /// Those of `action`; when the worker cannot go on, or was told to end by a signal. `action`
    /// is dropped then.
    pub async fn work_while<T>(
        &self,
        action: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let (flags, shutdown) = (self.flags(false), Shutdown::new());
        let store = Arc::clone(self.producer.store());
        let work = commands::work_here(&self.context, store, &flags, shutdown.clone());
        let mut work = Box::pin(work);
        let done = tokio::select! {
            biased;
            ended = &mut work => {
                ended?;
                return Err(Stop::Exit(EXIT_INTERRUPTED).into());
            }
            done = action => done,
        };
        shutdown.drain();
        work.await?;
        done
    }

    fn flags(&self, exit_when_idle: bool) -> args::worker::Worker {
        let flags = self.context.settings.worker(&args::worker::Worker::default());
        args::worker::Worker { exit_when_idle, ..flags }
    }

    /// The open questions, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn questions(&self) -> anyhow::Result<Vec<GateRow>> {
        Ok(commands::open_questions(&self.producer, &GateFilter::default()).await?)
    }

    /// Prints a question with the commands that answer it.
    ///
    /// # Errors
    /// When stdout takes nothing more.
    pub fn show(&self, row: &GateRow) -> anyhow::Result<()> {
        let run = row.run.as_str();
        let question = show::question(run, &row.open, &self.context);
        self.say(format_args!("{}\n{}", self.context.out.paint.bold(run), question.trim_end()))
    }

    /// Gives an answer, and prints what became of it. One that is refused is told with its code
    /// and is no error. Whether it was taken.
    ///
    /// # Errors
    /// When the store fails, or stdout takes nothing more.
    pub async fn answer(&self, signal: &SignalOptions) -> anyhow::Result<bool> {
        let paint = self.context.out.paint;
        match self.producer.signal(signal).await {
            Ok(done) => self.say(commands::human(&self.context, &done)).map(|()| true),
            Err(error) if error.code().http_status() < 500 => {
                let told = format!("refused: {} {error}", error.code());
                self.say(paint.red(&holdpoint_graph::printable(&told, 500))).map(|()| false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks whoever sits at the terminal for a yes or a no. None: neither was said.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn ask(&self, prompt: &str) -> anyhow::Result<Option<bool>> {
        Ok(input::yes_or_no(&self.context.out, prompt)?)
    }

    /// Asks whoever sits at the terminal for a line; empty when they say nothing.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read(&self, prompt: &str) -> anyhow::Result<String> {
        Ok(input::line(&self.context.out, prompt)?)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => write!(f, "{}: {}", failure.code, failure.message),
            Self::Exit(code) => write!(f, "the end with exit code {code}"),
            Self::ClosedPipe => f.write_str("stdout is closed"),
        }
    }
}

impl std::error::Error for Stop {}

/// Why an action failed, as the command line says it.
pub(crate) fn stop(error: anyhow::Error) -> Stop {
    let error = match error.downcast::<Stop>() {
        Ok(stop) => return stop,
        Err(error) => error,
    };
    let error = match error.downcast::<ProducerError>() {
        Ok(error) => return error.into(),
        Err(error) => error,
    };
    let error = match error.downcast::<StoreError>() {
        Ok(error) => return error.into(),
        Err(error) => error,
    };
    match error.downcast::<Refusal>() {
        Ok(refusal) => refusal.into(),
        Err(error) => {
            let text = holdpoint_graph::printable(&format!("{error:#}"), 2_000);
            Failure::new("E_FAILED", 1, text).into()
        }
    }
}
