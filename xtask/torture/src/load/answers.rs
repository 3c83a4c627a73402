//! Answers every open question sooner or later: some at once, some late, some by several at a
//! time, some after an answer that is for another question or for other arguments.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Result;
use holdpoint_graph::{Interrupt, InterruptKind, limits::PAGE_MAX};
use holdpoint_storage::{Clock as _, OpenQuestion, QuestionFilter, SystemClock};
use serde_json::{Value, json};

use super::{
    Desk,
    calls::{Answer, Question},
};
use crate::chance::Chance;

/// The pause between two looks at the open questions.
const LOOK_EVERY: Duration = Duration::from_millis(30);
/// When a question that is still open is answered again.
const AGAIN_AFTER: Duration = Duration::from_secs(3);
/// The hash of arguments that no question has.
const OTHER_ARGS: &str = "0000000000000000";

/// Answers until it is dropped.
pub(super) async fn answer(desk: Desk) -> Result<()> {
    let desk = Arc::new(desk);
    let mut chance = Chance::new(desk.seed, &desk.name);
    let mut seen: HashMap<String, std::time::Instant> = HashMap::new();
    loop {
        // A store that is away has no questions now; they will be there when it is back.
        let open = open(&desk).await.unwrap_or_default();
        let now = SystemClock.monotonic();
        for (number, question) in open.iter().enumerate() {
            let id = question.interrupt.to_string();
            let at = seen.get(&id);
            if at.is_some_and(|at| now.saturating_duration_since(*at) < AGAIN_AFTER) {
                continue;
            }
            let round = u64::from(at.is_some());
            seen.insert(id, now);
            let other =
                open.get((number + 1) % open.len()).map(|other| other.interrupt.to_string());
            let chance = Chance::new(chance.next(), "answer");
            let answers = Answers::new(question, other, round, chance);
            tokio::spawn(send(Arc::clone(&desk), answers));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn open(desk: &Desk) -> Result<Vec<OpenQuestion>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = desk
            .producer
            .store()
            .questions(&QuestionFilter::default(), after.as_ref(), PAGE_MAX)
            .await?;
        found.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// How one question is answered.
struct Answers {
    run: String,
    interrupt: String,
    value: Value,
    wait: Duration,
    copies: u64,
    foreign: Option<String>,
    /// Whether somebody first answers who saw other arguments.
    is_outdated: bool,
    round: u64,
    salt: u64,
}

impl Answers {
    fn new(question: &OpenQuestion, other: Option<String>, round: u64, mut chance: Chance) -> Self {
        let wait = if chance.percent(50) { 0 } else { chance.below(200) };
        let stored = serde_json::from_slice::<Interrupt>(&question.body).ok();
        let kind = stored.map(|stored| stored.kind);
        let interrupt = question.interrupt.to_string();
        let foreign = match chance.below(10) {
            0 => other.filter(|other| *other != interrupt),
            1 => Some(format!("{interrupt}-not")),
            _ => None,
        };
        Self {
            run: question.head.run.to_string(),
            value: value(kind, &mut chance),
            wait: Duration::from_millis(wait),
            copies: *chance.one_of(&[1, 1, 1, 2, 5]),
            salt: chance.below(1_000_000),
            foreign,
            is_outdated: chance.percent(10),
            interrupt,
            round,
        }
    }

    fn answer(&self, which: impl std::fmt::Display, interrupt: &str) -> Answer {
        Answer {
            id: format!("{}-a{}-{}-{which}", self.run, self.round, self.salt),
            run: self.run.clone(),
            question: Question::Interrupt(interrupt.to_owned()),
            value: self.value.clone(),
            args_hash: None,
            is_foreign: interrupt != self.interrupt,
        }
    }
}

/// A right answer to a question of this kind. An uncertain effect is never answered with
/// "retry": that would be a second call by a person's word.
fn value(kind: Option<InterruptKind>, chance: &mut Chance) -> Value {
    match kind {
        Some(InterruptKind::Uncertain) if chance.percent(50) => json!({ "result": {} }),
        Some(InterruptKind::Uncertain) => json!("skip"),
        Some(InterruptKind::Gate) => json!({ "approve": true }),
        Some(InterruptKind::Ask) | None => json!(chance.below(100)),
        Some(InterruptKind::Stale) => json!("resume"),
        Some(InterruptKind::Budget) => json!({ "raise_by": 100 }),
    }
}

async fn send(desk: Arc<Desk>, answers: Answers) {
    tokio::time::sleep(answers.wait).await;
    if let Some(foreign) = &answers.foreign {
        desk.signal(&answers.answer("foreign", foreign)).await;
    }
    if answers.is_outdated {
        let answer = answers.answer("outdated", &answers.interrupt);
        desk.signal(&Answer { args_hash: Some(OTHER_ARGS), is_foreign: true, ..answer }).await;
    }
    let mut calls = tokio::task::JoinSet::new();
    for copy in 0..answers.copies {
        let (desk, answer) = (Arc::clone(&desk), answers.answer(copy, &answers.interrupt));
        calls.spawn(async move { desk.signal(&answer).await });
    }
    calls.join_all().await;
}
