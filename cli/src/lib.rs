//! The command line of Holdpoint: the `holdpoint` program, and [`App`], which gives the same
//! commands to a program with graphs of its own.
//!
//! The only crate that picks a backend, and the only one that prints. Values are checked by the
//! libraries, so that the command line, a batch and a library call refuse the same things with
//! the same codes.

mod app;
mod args;
mod choice;
mod commands;
mod context;
mod desk;
mod failure;
mod input;
mod live;
mod logs;
mod out;
mod paint;
mod picker;
mod place;
mod secure;
mod settings;
mod show;
mod table;
mod terminal;
mod watched;

pub use app::{App, IntoGraph};
pub use desk::Desk;
