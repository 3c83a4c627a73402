//! What readers ask: a file for each kind of question, each answered from one state.

pub(crate) mod check;
pub(crate) mod lists;
pub(crate) mod registry;
pub(crate) mod runs;
pub(crate) mod sessions;
