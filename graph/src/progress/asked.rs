//! The fold of what happens to an open question before it is answered, and of who answered.

use super::Progress;
use crate::{Interrupt, InterruptId, Patch, limits::REQUESTS_KEPT};

impl Progress {
    /// The newest requests are remembered, so that none is taken twice.
    pub(super) fn remember(&mut self, request: &str) {
        self.applied.push_back(request.to_owned());
        if self.applied.len() > REQUESTS_KEPT {
            self.applied.pop_front();
        }
    }

    pub(super) fn remind(&mut self, id: &InterruptId, also: &[String]) -> Result<(), String> {
        let open = self.open.get_mut(id).ok_or_else(|| format!("{id} is not open"))?;
        if open.reminders.is_empty() {
            return Err(format!("{id} has no reminder left"));
        }
        open.reminders.remove(0);
        let new = also.iter().filter(|name| !open.assignees.contains(name)).cloned();
        let new: Vec<String> = new.collect();
        open.assignees.extend(new);
        Ok(())
    }

    pub(super) fn edit(&mut self, patches: &[Patch], shown: &[Interrupt]) -> Result<(), String> {
        self.state.apply(patches);
        for anew in shown {
            let id = &anew.interrupt;
            let open = self.open.get_mut(id).ok_or_else(|| format!("{id} is not open"))?;
            open.clone_from(anew);
        }
        Ok(())
    }
}
