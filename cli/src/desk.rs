//! What a program does with its graphs when it is called without a command.

use std::{fmt, io::IsTerminal, sync::Arc};

use holdpoint_graph::Refusal;
use holdpoint_producer::{GateFilter, GateRow, Producer, ProducerError};
use holdpoint_storage::StoreError;

use crate::{
    args, commands,
    context::Context,
    failure::{Failure, Stop},
    input, show,
};

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
        let flags =
            args::worker::Worker { exit_when_idle: true, ..args::worker::Worker::default() };
        let flags = self.context.settings.worker(&flags);
        let store = Arc::clone(self.producer.store());
        Ok(Box::pin(commands::work_here(&self.context, store, &flags)).await?)
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

    /// Asks whoever sits at the terminal for a yes or a no. None: neither was said.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn ask(&self, prompt: &str) -> anyhow::Result<Option<bool>> {
        Ok(input::yes_or_no(&self.context.out, prompt)?)
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
