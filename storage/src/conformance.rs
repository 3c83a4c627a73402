//! The conformance suite: what a backend must do, as named properties, one test each.
//!
//! A backend is whatever passes this suite. It offers a [`Bench`] and asks for the tests in its
//! `tests/conformance.rs`:
//!
//! ```ignore
//! struct SqliteBench(tempfile::TempDir);
//!
//! #[async_trait::async_trait]
//! impl holdpoint_storage::conformance::Bench for SqliteBench {
//!     async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> { /* open it */ }
//! }
//!
//! holdpoint_storage::conformance_tests!(SqliteBench::start().await);
//! ```
//!
//! The expression is evaluated once in each test, in an async context, and gives the bench of that
//! test alone. The property `model::model_agrees` runs random sequences on the backend and on
//! [`Model`]; `HOLDPOINT_CASES` sets their number (64 by default).
//!
//! Nothing here uses a backend in another way than through the traits, and nothing changes the
//! backend's clock: a property that needs time waits until the store's own time has passed.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::Namespace;

use crate::Store;

pub mod append;
pub mod batch;
pub mod claim;
pub mod commit;
pub mod enqueue;
pub mod inspect;
pub mod lanes;
pub mod park;
pub mod session;
pub mod signal;
pub mod tick;
pub mod upkeep;
mod world;

use world::id;

/// How a backend gives stores to the suite.
#[async_trait]
pub trait Bench: Send + Sync {
    /// A store of this namespace, empty. Stores of different namespaces that come from the same
    /// bench stand on one server where the backend has such a thing. The suite asks for a
    /// namespace once.
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store>;
}

fn namespace(name: &str) -> Namespace {
    id(name)
}

#[cfg(test)]
mod tests;
