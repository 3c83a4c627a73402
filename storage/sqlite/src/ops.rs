//! What the store does: a file for each operation, each one atomic step of a transaction.

pub(crate) mod append;
pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod enqueue;
pub(crate) mod lease;
pub(crate) mod prune;
pub(crate) mod registry;
pub(crate) mod repair;
pub(crate) mod signal;
pub(crate) mod tick;
