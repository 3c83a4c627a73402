//! What a test reads of a run that it drives.

use holdpoint_graph::Event;
use serde_json::Value;

use crate::driver::Driver;

impl Driver {
    pub(crate) fn path(&self) -> Vec<String> {
        self.progress.state().read::<Option<Vec<String>>>("path").unwrap().unwrap_or_default()
    }

    /// The path as one text.
    pub(crate) fn walked(&self) -> String {
        self.path().join(" ")
    }

    pub(crate) fn value(&self, key: &str) -> Value {
        self.progress.state().get(key).cloned().unwrap_or_default()
    }

    /// How often a node ran to its end.
    pub(crate) fn ran(&self, node: &str) -> usize {
        let is_it =
            |e: &&Event| matches!(e, Event::NodeCompleted { task, .. } if task.node == node);
        self.events.iter().filter(is_it).count()
    }
}
