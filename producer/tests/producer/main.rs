//! A producer against a real store, where the test plays the worker.

mod answers;
mod control;
mod enqueue;
mod fate;
mod fork;
mod link;
mod look;
mod signal;
mod trouble;
mod world;
