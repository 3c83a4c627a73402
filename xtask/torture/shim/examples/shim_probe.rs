//! Does to one file what its standard input says, then waits to be killed.
//!
//! `shim_probe FILE` with lines `write OFFSET TEXT`, `append TEXT`, `cut LENGTH`, `sync`. Prints
//! `ok` or the error's number after each.
#![expect(clippy::print_stdout, reason = "a test reads what it prints")]

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::FileExt as _,
};

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        match act(&file, &line.split(' ').collect::<Vec<_>>()) {
            Ok(()) => println!("ok"),
            Err(error) => println!("{}", error.raw_os_error().unwrap_or(-1)),
        }
    }
    println!("done");
    loop {
        std::thread::park();
    }
}

fn act(mut file: &File, words: &[&str]) -> io::Result<()> {
    let number = |text: &str| text.parse().map_err(io::Error::other);
    match words {
        ["write", offset, text] => file.write_all_at(text.as_bytes(), number(offset)?),
        ["append", text] => {
            file.seek(SeekFrom::End(0))?;
            file.write_all(text.as_bytes())
        }
        ["cut", len] => file.set_len(number(len)?),
        ["sync"] => file.sync_data(),
        _ => Err(io::Error::other("no such act")),
    }
}
