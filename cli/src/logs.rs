//! What the process says about itself, on stderr.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::{
    context::Context,
    failure::{Failure, Stop},
};

/// Starts logging at the level that was set, or at `level`.
///
/// # Errors
/// Usage for a level that is none.
pub(crate) fn start(context: &Context, level: &str) -> Result<(), Stop> {
    let level = context.settings.log.as_deref().unwrap_or(level);
    let is_directive = level.contains(['=', ',']);
    if !is_directive && level.parse::<LevelFilter>().is_err() {
        let shown = holdpoint_graph::shown(level, 40);
        let text = format!("log is {shown}, it must be error, warn, info, debug, trace or off");
        return Err(Failure::usage("log", text).into());
    }
    let filter = EnvFilter::try_new(level)
        .map_err(|fault| Failure::usage("log", format!("log is no filter: {fault}")))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(!context.out.talk.is_plain())
        .with_target(false)
        .with_writer(std::io::stderr);
    // A program that called `App::run` twice has its logs already.
    drop(logs.try_init());
    Ok(())
}
