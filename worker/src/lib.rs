//! The worker: claims runs, executes them, keeps their leases, and does the upkeep that every
//! worker does.
//!
//! [`Worker`] is the whole; the command line puts a [`supervise`]d process around it, so that the
//! death of the process costs well under a second and not a lease. Policy is in
//! [`WorkerConfig`]; how a run is executed is the executor's business.

mod backend;
mod child;
mod claim;
mod config;
mod health;
mod idle;
mod job;
mod keeper;
mod layer;
mod leases;
mod maintain;
mod reset;
mod running;
mod shutdown;
mod supervisor;
mod trouble;
mod upkeep;
mod watch;
mod worker;

pub use child::{
    ENV_CHILD, ENV_WORKER_ID, child_worker_id, die_with_parent, is_child, watch_parent,
};
pub use config::WorkerConfig;
pub use health::{Health, HealthReport};
pub use layer::Execute;
pub use shutdown::Shutdown;
pub use supervisor::{SupervisorConfig, supervise};
pub use upkeep::StoreFactory;
pub use worker::{Worker, WorkerEnd};
