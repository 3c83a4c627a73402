//! The fold: one event more. Every pair that cannot follow is an error that says why.

use std::collections::BTreeSet;

use super::{
    Branch, Call, EngineError, Flow, ForkState, Phase, Progress, Task,
    flow::{branch_of_mut, each_task},
    task::TaskPhase,
};
use crate::{
    Answer, Beginning, BranchStart, END, Event, Fork, Interrupt, InterruptId, InterruptKind,
    Outcome, Patch, Routing, State, TaskRef,
};

impl Progress {
    /// Folds one event more.
    ///
    /// # Errors
    /// When it does not follow; the progress is then to be thrown away.
    pub fn apply(&mut self, event: &Event) -> Result<(), EngineError> {
        let seq = self.seq;
        let folded = self.may_follow(event).and_then(|()| self.fold_one(event));
        folded.map_err(|why| EngineError { seq, event: event.type_name(), why })?;
        self.seq += 1;
        Ok(())
    }

    /// Whether the run is in a phase in which such an event may be.
    fn may_follow(&self, event: &Event) -> Result<(), String> {
        let fits = match event {
            Event::RunStarted { .. } => self.phase == Phase::Unborn,
            Event::NodeStarted { .. }
            | Event::StepRecorded { .. }
            | Event::NodeCompleted { .. }
            | Event::NodeRouted { .. }
            | Event::NodeFailed { .. }
            | Event::NodeSlept { .. }
            | Event::BranchJoined { .. }
            | Event::InterruptOpened { .. }
            | Event::InterruptAnswered { .. }
            | Event::VoteCast { .. }
            | Event::InterruptReminded { .. }
            | Event::TimeUsed { .. }
            | Event::StateEdited { .. } => self.phase == Phase::Active,
            Event::RunCompleted => self.has_arrived(),
            Event::RunFailed { .. } | Event::RunCancelled { .. } => self.end().is_none(),
            Event::Redriven { .. } => matches!(self.phase, Phase::Failed(_)),
            // What happens to the run's row says nothing about its position.
            Event::Claimed { .. }
            | Event::WorkerLost { .. }
            | Event::RunParked { .. }
            | Event::RunRescheduled { .. }
            | Event::Migrated { .. } => true,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("the run {}", self.phase.describe())),
        }
    }

    fn fold_one(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::RunStarted { graph, fingerprint, max_steps, budget, begin } => {
                self.graph = Some(graph.clone());
                self.fingerprint = Some(fingerprint.clone());
                self.max_steps = *max_steps;
                self.budget = *budget;
                self.begin(begin)?;
            }
            // What the run's owners did says nothing about what its nodes did.
            Event::RunParked { .. } | Event::RunRescheduled { .. } => {}
            Event::Claimed { epoch, .. } if self.budget.time_ms.is_some() => {
                self.time_used.claimed(*epoch);
            }
            Event::Claimed { .. } => {}
            Event::WorkerLost { epoch, claimed_at_ms, lost_at_ms, .. } => {
                self.counters.lost_workers += 1;
                if self.budget.time_ms.is_some() {
                    let had_ms = lost_at_ms.saturating_sub(*claimed_at_ms);
                    self.time_used.lost(*epoch, u64::try_from(had_ms).unwrap_or(0));
                }
            }
            Event::TimeUsed { ms } => self.time_used.counted(*ms),
            Event::NodeStarted { task, step, .. } => {
                self.waiting_mut(task)?.begun.push(step.clone());
            }
            Event::StepRecorded { task, key, value } => {
                self.task_mut(task)?.step_done(key, value);
            }
            Event::NodeCompleted { task, patches, next, counted } => {
                self.waiting_mut(task)?;
                self.write(&task.branch, patches)?;
                self.complete(task, next, *counted)?;
            }
            Event::NodeRouted { task, next } => match self.task_mut(task)?.unrouted() {
                Some(_) => self.advance(task, next)?,
                None => return Err(format!("the route of {task:?} did not fail")),
            },
            Event::NodeFailed { task, error, retry_at_ms, .. } => {
                self.counters.node_errors += 1;
                self.waiting_mut(task)?.fail(error, *retry_at_ms);
            }
            Event::NodeSlept { task, until_ms } => self.waiting_mut(task)?.sleep(*until_ms),
            Event::BranchJoined { branch, patches } => {
                self.write(branch, patches)?;
                self.join(branch)?;
            }
            Event::InterruptOpened { interrupt } => self.ask(interrupt)?,
            Event::InterruptAnswered { interrupt, answer, request, outcome } => {
                self.answer(interrupt, answer, outcome)?;
                self.remember(request);
            }
            Event::VoteCast { interrupt, vote, request } => {
                // One that was counted when the question had closed decides nothing.
                if let Some(open) = self.open.get_mut(interrupt) {
                    open.votes.push(vote.clone());
                }
                self.remember(request);
            }
            Event::InterruptReminded { interrupt, also } => self.remind(interrupt, also)?,
            Event::StateEdited { patches, shown, .. } => self.edit(patches, shown)?,
            Event::Migrated { to, .. } => self.fingerprint = Some(to.clone()),
            Event::RunCompleted => self.end_as(Phase::Completed),
            Event::RunFailed { reason } => self.end_as(Phase::Failed(reason.clone())),
            Event::RunCancelled { .. } => self.end_as(Phase::Cancelled),
            Event::Redriven { max_steps, .. } => self.redrive(*max_steps),
        }
        Ok(())
    }

    fn begin(&mut self, begin: &Beginning) -> Result<(), String> {
        self.phase = Phase::Active;
        match begin {
            Beginning::Entry { state, entry } => {
                self.state = state.clone();
                self.flow = self.enter(entry);
            }
            Beginning::Checkpoint { origin, progress, patches } => {
                let theirs = (**progress).clone();
                if !theirs.is_begun() {
                    return Err("the checkpoint lies before its run began".to_owned());
                }
                self.state = theirs.state;
                self.flow = theirs.flow;
                self.visits = theirs.visits;
                self.state.apply(patches);
                self.origin = Some(origin.clone());
                each_task(&mut self.flow, &mut |task| {
                    task.redrive();
                    task.begun.clear();
                });
            }
        }
        Ok(())
    }

    /// A new task at `node`, counted as a visit.
    fn enter(&mut self, node: &str) -> Flow {
        let visit = self.visits.entry(node.to_owned()).or_insert(0);
        *visit += 1;
        Flow::Task(Box::new(Task::at(node, *visit)))
    }

    fn task_mut(&mut self, task: &TaskRef) -> Result<&mut Task, String> {
        let Flow::Task(inner) = self.place_mut(&task.branch)? else {
            return Err(format!("there is no task {task:?}"));
        };
        if inner.node != task.node || inner.visit != task.visit {
            return Err(format!("{}#{} stands where {task:?} should", inner.node, inner.visit));
        }
        Ok(inner)
    }

    /// A live task whose node is still to end.
    fn waiting_mut(&mut self, task: &TaskRef) -> Result<&mut Task, String> {
        let inner = self.task_mut(task)?;
        match inner.is_waiting() {
            true => Ok(inner),
            false => Err(format!("{task:?} has ended")),
        }
    }

    fn place_mut(&mut self, branch: &[u32]) -> Result<&mut Flow, String> {
        let mut flow = &mut self.flow;
        for index in branch {
            flow = &mut branch_of_mut(flow, *index)?.flow;
        }
        Ok(flow)
    }

    /// Applies patches to the state of a place.
    pub(crate) fn write(&mut self, branch: &[u32], patches: &[Patch]) -> Result<(), String> {
        let Some((last, outer)) = branch.split_last() else {
            self.state.apply(patches);
            return Ok(());
        };
        let inner = branch_of_mut(self.place_mut(outer)?, *last)?;
        inner.state.apply(patches);
        inner.writes.extend(patches.iter().cloned());
        Ok(())
    }

    /// Counts an event that was applied piece by piece.
    pub(crate) const fn count(&mut self) {
        self.seq += 1;
    }

    /// What follows when a node's patches are applied: the step is counted, the flow goes on.
    pub(crate) fn complete(
        &mut self,
        task: &TaskRef,
        next: &Routing,
        counted: bool,
    ) -> Result<(), String> {
        self.steps += u64::from(counted);
        self.close(task);
        self.advance(task, next)
    }

    /// Takes away the open questions of a task that the run leaves.
    fn close(&mut self, task: &TaskRef) {
        self.open.retain(|_, open| open.task.as_ref() != Some(task));
    }

    fn advance(&mut self, task: &TaskRef, next: &Routing) -> Result<(), String> {
        self.task_mut(task)?;
        let flow = match next {
            Routing::Unresolved(why) => {
                let inner = self.task_mut(task)?;
                inner.phase = TaskPhase::Unrouted(why.clone());
                inner.begun.clear();
                return Ok(());
            }
            Routing::To(node) => self.arrive_or_enter(&task.branch, node)?,
            Routing::Fork(fork) => {
                let state = self.state_at(&task.branch).cloned().unwrap_or_default();
                self.fork(fork, &state)
            }
        };
        self.go_on(&task.branch, flow)
    }

    /// Puts a flow in its place. A branch that has arrived keeps of its state what the join asks
    /// for: the keys that it replaced.
    fn go_on(&mut self, branch: &[u32], flow: Flow) -> Result<(), String> {
        let Some((last, outer)) = branch.split_last() else {
            self.flow = flow;
            return Ok(());
        };
        let inner = branch_of_mut(self.place_mut(outer)?, *last)?;
        if flow == Flow::Arrived {
            let state = std::mem::take(&mut inner.state);
            let replaced = inner.writes.iter().filter(|patch| patch.op.is_replacement());
            let keys: BTreeSet<&str> = replaced.map(|patch| patch.key.as_str()).collect();
            let kept = |key: &&str| Some(((*key).to_owned(), state.get(*key)?.clone()));
            inner.state = keys.iter().filter_map(kept).collect();
        }
        inner.flow = flow;
        Ok(())
    }

    /// The flow of a place that goes on at `node`: at the join around it, it has arrived.
    fn arrive_or_enter(&mut self, branch: &[u32], node: &str) -> Result<Flow, String> {
        if self.join_around(branch) == Some(node) {
            return Ok(Flow::Arrived);
        }
        if node == END {
            return Err("a branch ends before its join".to_owned());
        }
        Ok(self.enter(node))
    }

    fn fork(&mut self, fork: &Fork, state: &State) -> Flow {
        let branches = fork.branches.iter().map(|start| {
            let mut state = state.clone();
            let (first, flow) = match start {
                BranchStart::Join => {
                    state = State::new();
                    (fork.join.clone(), Flow::Arrived)
                }
                BranchStart::Fork(inner) => {
                    (format!("to {}", inner.join), self.fork(inner, &state))
                }
                BranchStart::Node { node, input } => {
                    for (key, value) in input.iter().flatten() {
                        state.set(key.clone(), value.clone());
                    }
                    (node.clone(), self.enter(node))
                }
            };
            Branch { first, state, writes: Vec::new(), flow }
        });
        let branches = branches.collect();
        Flow::Fork(ForkState { join: fork.join.clone(), branches })
    }

    fn join(&mut self, branch: &[u32]) -> Result<(), String> {
        let join = match self.place(branch) {
            Some(Flow::Fork(fork)) if fork.branches.iter().all(|b| b.flow == Flow::Arrived) => {
                fork.join.clone()
            }
            Some(Flow::Fork(_) | Flow::Task(_) | Flow::Arrived) | None => {
                return Err(format!("no fork at {branch:?} has all its branches"));
            }
        };
        let flow = self.arrive_or_enter(branch, &join)?;
        self.go_on(branch, flow)
    }

    fn ask(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        if self.open.contains_key(&interrupt.interrupt) {
            return Err(format!("{} is open already", interrupt.interrupt));
        }
        if let Some(task) = &interrupt.task {
            let inner = self.task_mut(task)?;
            if let (InterruptKind::Ask, Some(key)) = (interrupt.kind, &interrupt.key) {
                let id = interrupt.interrupt.clone();
                inner.calls.push(Call::Ask { key: key.clone(), interrupt: id, answer: None });
                inner.suspend();
            }
        }
        self.open.insert(interrupt.interrupt.clone(), interrupt.clone());
        Ok(())
    }

    fn answer(
        &mut self,
        id: &InterruptId,
        answer: &Answer,
        outcome: &Outcome,
    ) -> Result<(), String> {
        let open = self.open.remove(id).ok_or_else(|| format!("{id} is not open"))?;
        let Some(task) = open.task else {
            self.fresh_at_ms = Some(answer.at_ms);
            if let Outcome::Raised { resource, by } = outcome {
                let used = self.used(*resource);
                self.budget.raise(*resource, used, *by);
            }
            return Ok(());
        };
        match outcome {
            Outcome::Answered => {
                self.task_mut(&task)?.answered(id, answer);
                Ok(())
            }
            Outcome::Edited(patches) => {
                self.write(&task.branch, patches)?;
                self.task_mut(&task)?.answered(id, answer);
                Ok(())
            }
            Outcome::Rerouted(node) => {
                self.close(&task);
                self.advance(&task, &Routing::To(node.clone()))
            }
            Outcome::Retry => {
                let inner = self.task_mut(&task)?;
                inner.begun.retain(|step| *step != open.key);
                Ok(())
            }
            Outcome::Completed { patches, next } => {
                self.write(&task.branch, patches)?;
                self.complete(&task, next, true)
            }
            Outcome::StepDone { key, value } => {
                self.task_mut(&task)?.step_done(key, value);
                Ok(())
            }
            Outcome::Failed(error) => {
                self.counters.node_errors += 1;
                self.task_mut(&task)?.fail(error, None);
                Ok(())
            }
            Outcome::Resumed
            | Outcome::Cancelled
            | Outcome::Raised { .. }
            | Outcome::Stopped(_) => Ok(()),
        }
    }

    fn end_as(&mut self, phase: Phase) {
        self.phase = phase;
        self.open.clear();
    }

    /// Failed tasks get all their attempts again, open questions are asked anew, and what is
    /// recorded or answered stays.
    fn redrive(&mut self, max_steps: Option<u64>) {
        // A run that failed before it began (expired, undecodable) begins now.
        self.phase = if self.graph.is_some() { Phase::Active } else { Phase::Unborn };
        self.redrives += 1;
        self.max_steps = max_steps.unwrap_or(self.max_steps);
        each_task(&mut self.flow, &mut Task::redrive);
    }
}
