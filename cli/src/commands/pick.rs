//! `gates pick`: going through open questions with single keys.

use holdpoint_graph::{Code, limits};
use holdpoint_producer::{GateFilter, GateRow, Producer, SignalOptions};
use holdpoint_storage::{Clock, SystemClock};
use tokio::sync::mpsc;

use crate::{
    args::gates::Pick,
    commands::{
        answer::who,
        decide::{line, shown},
        inbox::Conditions,
        watch::told_to_end,
    },
    context::Context,
    failure::Stop,
    picker::{
        Action, Key, Picker, Reply, Told,
        draw::{Frame, draw},
    },
    place::Access,
    terminal::{Screen, pressed},
};

/// Shows the questions until none is left or somebody leaves.
pub(crate) async fn run(context: &Context, args: &Pick) -> Result<(), Stop> {
    let conditions = Conditions::new(&args.which, &args.group)?;
    let mut screen = Screen::take(context.out)?;
    let producer = context.producer(Access::Existing).await?;
    let person =
        Person { context, producer, conditions, by: who(args.by.as_ref()), groups: &args.group };
    let end = told_to_end();
    tokio::select! {
        ended = person.pick(&mut screen) => ended,
        () = end => screen.clear(),
    }
}

/// Who answers, and what they are shown.
struct Person<'a> {
    context: &'a Context,
    producer: Producer,
    conditions: Conditions,
    by: String,
    groups: &'a [String],
}

impl Person<'_> {
    async fn pick(&self, screen: &mut Screen) -> Result<(), Stop> {
        let (rows, has_more) = self.questions().await?;
        if rows.is_empty() {
            self.context.out.hint("no open questions");
            return Ok(());
        }
        let mut picker = Picker::new(rows, has_more);
        let mut keys = pressed();
        loop {
            self.draw(screen, &picker)?;
            let key = keys.recv().await.unwrap_or(Key::Interrupt);
            match picker.press(key) {
                Action::Draw => {}
                Action::Leave => return screen.clear(),
                Action::Send(reply) => {
                    let told = self.answer(screen, &reply).await?;
                    let (rows, has_more) = self.questions().await?;
                    picker.told(told, rows, has_more);
                    if picker.is_empty() {
                        self.draw(screen, &picker)?;
                        self.context.out.hint("no open questions are left");
                        return Ok(());
                    }
                    // A key that was pressed before the next question was there is not for it.
                    if was_interrupted(&mut keys) {
                        return screen.clear();
                    }
                }
            }
        }
    }

    /// The first page of questions, and whether there are more.
    async fn questions(&self) -> Result<(Vec<GateRow>, bool), Stop> {
        let filter: GateFilter = self.conditions.now(&self.producer).await?;
        let page = self.producer.gates(&filter, None, limits::PAGE_MAX).await?;
        Ok((page.rows, page.next.is_some()))
    }

    fn draw(&self, screen: &mut Screen, picker: &Picker) -> Result<(), Stop> {
        let (columns, lines) = screen.size();
        let (by, paint) = (self.by.as_str(), self.context.out.paint);
        let frame = Frame { columns, lines, now_ms: SystemClock.wall_ms(), by, paint };
        screen.draw(&draw(picker, frame))
    }

    /// Sends an answer; one that was taken is told on a line that stays.
    async fn answer(&self, screen: &mut Screen, reply: &Reply) -> Result<Told, Stop> {
        let Reply { row, word, answer, comment } = reply;
        let mut options = SignalOptions::run(row.run.as_str())
            .interrupt(row.open.interrupt.as_str())
            .answer(answer.clone())
            .args_hash(&row.open.args_hash)
            .by(&self.by)
            .from("cli");
        options = self.groups.iter().fold(options, SignalOptions::group);
        if let Some(comment) = comment {
            options = options.comment(comment);
        }
        match self.producer.signal(&options).await {
            Ok(done) => {
                let line = line(self.context, row, &done);
                screen.keep(&format!("{line} {}", self.context.out.paint.dim(word)))?;
                Ok(Told::Taken)
            }
            Err(error) => {
                let why = format!("{}: {}", error.code(), shown(&error));
                Ok(if is_over(error.code()) { Told::Over(why) } else { Told::Refused(why) })
            }
        }
    }
}

/// Whether no other answer of this person would be taken either.
fn is_over(code: Code) -> bool {
    let over = [Code::Decided, Code::Voted, Code::RunFinal, Code::StaleInterrupt, Code::NotFound];
    over.contains(&code)
}

/// Drops the keys that wait; whether one of them was to end the picker.
fn was_interrupted(keys: &mut mpsc::Receiver<Key>) -> bool {
    let mut was = false;
    while let Ok(key) = keys.try_recv() {
        was |= key == Key::Interrupt;
    }
    was
}
