//! The recorder: one file per process, to which lines are only ever appended.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
};

use crate::Line;

/// Writes the history of one process.
///
/// Each line is one `write`, so a kill tears at most the line that is being written, and nobody
/// else's. Lines are not synced: they outlive the process, which is all that dies in a torture
/// run.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    process: String,
}

impl Recorder {
    /// Opens the file of `process` in `folder`, which must exist.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(folder: &Path, process: &str) -> std::io::Result<Self> {
        let path = folder.join(format!("{process}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, process: process.to_owned() })
    }

    /// Writes a line. May be called from many threads.
    ///
    /// # Errors
    /// When it cannot be written as a whole.
    pub fn write(&self, mut line: Line) -> std::io::Result<()> {
        line.process.clone_from(&self.process);
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = (&self.file).write(&text)?;
        if written == text.len() {
            return Ok(());
        }
        Err(std::io::Error::other(format!("wrote {written} of {} bytes", text.len())))
    }
}
