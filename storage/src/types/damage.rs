//! What in a store contradicts itself, and what would mend it.

use serde::{Deserialize, Serialize};

/// One contradiction, with the changes that mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Which kind it is: `orphan`, `misplaced`, `missing`, `unreadable`, `parts`, `session`,
    /// `count`, `type`.
    pub check: String,
    /// The run, session, queue or key that it is about, as it is stored.
    pub about: String,
    /// What was found.
    pub text: String,
    /// What a repair does; empty when nothing but its owner or a person can.
    pub action: String,
    /// The stored values that the repair replaces, or relies on.
    pub changes: Vec<Change>,
}

/// A stored value before and after a repair. One that stays the same is what the repair relies
/// on: if it has changed meanwhile, the repair does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// How the backend stores it.
    pub kind: String,
    /// The key or the table.
    pub place: String,
    /// The member, the field or the row.
    pub item: String,
    /// What stands there; none when nothing does.
    pub before: Option<String>,
    /// What is to stand there.
    pub after: Option<String>,
}

impl Damage {
    /// Whether a repair can mend it.
    #[must_use]
    pub const fn is_mendable(&self) -> bool {
        !self.action.is_empty()
    }
}
