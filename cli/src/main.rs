//! `holdpoint`: the whole command line without graphs of its own. It looks at runs, brings them
//! and acts on them; programs built on `App` run them.

use std::process::ExitCode;

use holdpoint_cli::App;

fn main() -> ExitCode {
    App::new().main()
}
