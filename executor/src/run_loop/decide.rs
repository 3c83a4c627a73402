//! What a run does next, and how it leaves its owner: finish, fail, cancel, park, put off, back.

use holdpoint_graph::{End, Event, Next, Reason, ReasonCode, Resource, RunStatus, TaskRef};
use holdpoint_storage::Disposition;

use super::{Flow, RunLoop};
use crate::{Outcome, journal::Written};

impl RunLoop {
    /// Asks the engine, commits what must be durable first, and starts or leaves.
    pub(super) async fn decide(&mut self) -> Flow {
        let now_ms = self.journal.now_ms();
        let told = self.facts.control.told();
        if told.is_cancelled && self.running.is_empty() {
            return self.cancel("a request").await;
        }
        let runs = |place: &[u32]| self.running.contains_key(place);
        let next = self.engine.next_beside(&self.progress, now_ms, runs);
        match next {
            Next::Finished if self.running.is_empty() => self.finish().await,
            Next::Failed(reason) if self.running.is_empty() => self.fail(reason).await,
            Next::Spent(resource) if self.running.is_empty() => self.ask_for_more(resource),
            Next::Finished | Next::Failed(_) | Next::Spent(_) => self.flush_results().await,
            Next::Wait { wake_at_ms, is_timer } if self.running.is_empty() => {
                self.rest(wake_at_ms, is_timer).await
            }
            Next::Wait { .. } => self.flush_results().await,
            Next::Run(fresh) => self.go_on(fresh, now_ms).await,
        }
    }

    async fn go_on(&mut self, fresh: Vec<TaskRef>, now_ms: i64) -> Flow {
        self.flush_results().await?;
        let told = self.facts.control.told();
        if told.is_cancelled {
            return Flow::Continue(());
        }
        if told.is_draining {
            return if self.running.is_empty() {
                self.hand_back().await
            } else {
                Flow::Continue(())
            };
        }
        if self.facts.deadline_ms.is_some_and(|at| at <= now_ms) {
            return if self.running.is_empty() { self.expire().await } else { Flow::Continue(()) };
        }
        if self.is_over_time(now_ms) {
            return if self.running.is_empty() {
                self.ask_for_more(Resource::Time)
            } else {
                Flow::Continue(())
            };
        }
        for task in fresh {
            self.start(task).await?;
        }
        Flow::Continue(())
    }

    /// The run's time to end by has passed.
    async fn expire(&mut self) -> Flow {
        let message = "the run's deadline has passed".to_owned();
        self.fail(Reason { code: ReasonCode::Expired, message, node: None }).await
    }

    async fn flush_results(&mut self) -> Flow {
        if self.journal.has_result() { self.flush().await } else { Flow::Continue(()) }
    }

    async fn finish(&mut self) -> Flow {
        self.end(Event::RunCompleted, End::Completed).await
    }

    pub(super) async fn fail(&mut self, reason: Reason) -> Flow {
        let end = End::Failed(reason.code);
        self.end(Event::RunFailed { reason }, end).await
    }

    pub(super) async fn cancel(&mut self, by: &str) -> Flow {
        self.drop_attempts();
        self.end(Event::RunCancelled { by: by.to_owned() }, End::Cancelled).await
    }

    /// Ends the run. A cancel that came first wins, unless the run is being cancelled already.
    async fn end(&mut self, event: Event, end: End) -> Flow {
        self.count_time();
        self.journal.push(event);
        match self.journal.commit(&self.progress, Disposition::Finish { end }).await {
            Written::Done { .. } => Flow::Break(match end {
                End::Completed => Outcome::Completed,
                End::Failed(reason) => Outcome::Failed(reason),
                End::Cancelled => Outcome::Cancelled,
            }),
            Written::Cancelled => {
                self.journal.take_back_last();
                Box::pin(self.cancel("a request")).await
            }
            Written::Fenced => Flow::Break(Outcome::Fenced),
            Written::GivenUp(error) => self.give_up(&error),
        }
    }

    /// Nothing can run: the run parks, or waits for a time.
    async fn rest(&mut self, wake_at_ms: Option<i64>, is_timer: bool) -> Flow {
        match (is_timer, wake_at_ms) {
            (true, Some(until_ms)) => self.put_off(until_ms).await,
            (_, wake_at_ms) => self.park(wake_at_ms).await,
        }
    }

    async fn park(&mut self, wake_at_ms: Option<i64>) -> Flow {
        let event = Event::RunParked { wake_at_ms };
        self.leave(event, Disposition::Park { wake_at_ms }, Outcome::Parked).await
    }

    async fn put_off(&mut self, until_ms: i64) -> Flow {
        let event = Event::RunRescheduled { until_ms };
        let outcome = Outcome::Rescheduled { until_ms };
        self.leave(event, Disposition::Reschedule { until_ms }, outcome).await
    }

    async fn leave(&mut self, event: Event, disposition: Disposition, outcome: Outcome) -> Flow {
        self.count_time();
        self.progress.apply(&event).expect("a live run may rest");
        self.journal.push(event);
        match self.journal.commit(&self.progress, disposition).await {
            Written::Done { is_owner: false, .. } => Flow::Break(outcome),
            // An answer was there already: the run goes on under the same lease.
            Written::Done { inbox, is_owner: true } => {
                self.inbox = inbox;
                Flow::Continue(())
            }
            Written::Cancelled => self.cancel("a request").await,
            Written::Fenced => Flow::Break(Outcome::Fenced),
            Written::GivenUp(error) => self.give_up(&error),
        }
    }

    /// Hands the run back, claimable now. What ended is committed first.
    pub(super) async fn hand_back(&mut self) -> Flow {
        if self.count_time() {
            self.flush().await?;
        }
        self.flush_results().await?;
        match self.journal.release().await {
            Ok(true) => Flow::Break(Outcome::Released),
            Ok(false) => Flow::Break(Outcome::Fenced),
            Err(error) => {
                tracing::warn!(run = %self.facts.run, %error, "could not hand the run back");
                Flow::Break(Outcome::GivenUp)
            }
        }
    }
}

impl From<&Outcome> for Option<RunStatus> {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed => Some(RunStatus::Completed),
            Outcome::Failed(_) => Some(RunStatus::Failed),
            Outcome::Cancelled => Some(RunStatus::Cancelled),
            Outcome::Parked => Some(RunStatus::Parked),
            Outcome::Rescheduled { .. } => Some(RunStatus::Scheduled),
            Outcome::Released => Some(RunStatus::Queued),
            Outcome::Fenced | Outcome::GivenUp => None,
        }
    }
}
