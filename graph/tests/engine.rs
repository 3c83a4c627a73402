//! The engine from outside: graphs are built, driven task by task and folded again, all with the
//! public API alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "engine/answers.rs"]
mod answers;
#[path = "engine/checkpoints.rs"]
mod checkpoints;
#[path = "engine/drawing.rs"]
mod drawing;
#[path = "engine/driver.rs"]
mod driver;
#[path = "engine/effects.rs"]
mod effects;
#[path = "engine/faults.rs"]
mod faults;
#[path = "engine/functional.rs"]
mod functional;
#[path = "engine/gates.rs"]
mod gates;
#[path = "engine/joins.rs"]
mod joins;
#[path = "engine/limits.rs"]
mod limits;
#[path = "engine/properties.rs"]
mod properties;
#[path = "engine/reading.rs"]
mod reading;
#[path = "engine/retries.rs"]
mod retries;
#[path = "engine/routes.rs"]
mod routes;
#[path = "engine/scale.rs"]
mod scale;
#[path = "engine/sends.rs"]
mod sends;
#[path = "engine/subgraphs.rs"]
mod subgraphs;
#[path = "engine/votes.rs"]
mod votes;
#[path = "engine/writes.rs"]
mod writes;
