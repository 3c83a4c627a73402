//! Where cargo has put the programs that go with the running test.

use std::path::{Path, PathBuf};

/// The folder of the running test's build profile, such as `target/debug`.
///
/// # Panics
///
/// When the running program was not built by cargo.
#[must_use]
pub fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the system knows which program this is");
    let is_profile = |folder: &&Path| folder.join("deps").is_dir();
    let found = test.ancestors().skip(1).find(is_profile);
    found.unwrap_or_else(|| panic!("{} lies in no cargo profile", test.display())).to_owned()
}

/// The path of the example program `name`.
///
/// Cargo builds the examples of a package before its tests; `cargo xtask test` builds all.
///
/// # Panics
///
/// When the example has not been built.
#[must_use]
pub fn example_path(name: &str) -> PathBuf {
    built(profile_folder().join("examples").join(name), "--examples")
}

/// The path of the binary `name`, for instance `holdpoint`.
///
/// Cargo builds the binaries of other packages only when asked; `cargo xtask test` asks.
///
/// # Panics
///
/// When the binary has not been built.
#[must_use]
pub fn binary_path(name: &str) -> PathBuf {
    built(profile_folder().join(name), "--bins")
}

fn built(path: PathBuf, flag: &str) -> PathBuf {
    assert!(path.is_file(), "{} is missing: cargo build --workspace {flag}", path.display());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_folder_holds_this_test() {
        let test = std::env::current_exe().unwrap();
        assert!(test.starts_with(profile_folder().join("deps")), "{}", test.display());
    }

    #[test]
    fn a_missing_program_says_how_to_build_it() {
        let panic = std::panic::catch_unwind(|| binary_path("no-such-program")).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("cargo build --workspace --bins"), "{text}");
    }
}
