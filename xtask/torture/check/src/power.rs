//! Power cuts: the harness' side of the shim.
//!
//! `holdpoint-torture-shim` is preloaded into every process that has the store's files open
//! ([`Shim::env`]) and keeps an undo log of what no sync has made durable. After those processes
//! were killed, [`Shim::cut`] writes back what the logs hold: the files are then as a machine would
//! find them whose power went in that moment and whose disk keeps exactly what was synced.
//!
//! That is the pessimistic end of what a power cut may do; a real one may also have written any
//! part of the rest, which [`Tail::Garbage`] stands for. The shim's own documentation says what
//! neither models: lost or reordered renames, creations and deletions above all.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use holdpoint_storage::Random;

mod log;

use log::Log;

/// The name of the shim's library.
const LIBRARY: &str = "libholdpoint_torture_shim.so";

/// The shim of one store: the folder of its logs and of its wishes, and the folders it watches.
#[derive(Debug)]
pub struct Shim {
    library: PathBuf,
    dir: PathBuf,
    roots: Vec<PathBuf>,
    wishes: Wishes,
}

#[derive(Debug, Default)]
struct Wishes {
    delay: Duration,
    failure: Option<Failure>,
}

/// How calls of watched processes fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Each sync ends with an input/output error, and makes nothing durable.
    SyncEio,
    /// Each sync finds no space.
    SyncEnospc,
    /// Each write that would let a file grow finds no space.
    Full,
}

/// What is found in the place of bytes that were written and not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// What was there before, and nothing where the file was shorter.
    Lost,
    /// Random bytes where the file was shorter, up to the length it had in the end; what was
    /// overwritten in place is as before.
    Garbage,
}

/// What a power cut did to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The file.
    pub path: PathBuf,
    /// Writes that were undone.
    pub writes: usize,
    /// Bytes that its end lost.
    pub cut: u64,
    /// Bytes in it that were as before again.
    pub restored: u64,
}

impl Shim {
    /// A shim with its files in `dir` (made if need be), for the files under `roots`.
    ///
    /// The library is looked for beside the running program, where cargo puts it.
    ///
    /// # Errors
    /// When the library is not there, or a folder cannot be made or found.
    pub fn new(dir: &Path, roots: &[PathBuf]) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let roots = roots.iter().map(|root| root.canonicalize()).collect::<io::Result<_>>()?;
        let wishes = Wishes::default();
        let shim = Self { library: library()?, dir: dir.canonicalize()?, roots, wishes };
        shim.wish()?;
        Ok(shim)
    }

    /// The variables to start a process with.
    #[must_use]
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let roots: Vec<_> = self.roots.iter().map(|root| root.as_os_str()).collect();
        vec![
            ("LD_PRELOAD".into(), self.library.clone().into()),
            ("HOLDPOINT_SHIM_DIR".into(), self.dir.clone().into()),
            ("HOLDPOINT_SHIM_ROOTS".into(), roots.join(":".as_ref())),
        ]
    }

    /// How long each sync takes from now on, besides what the disk needs.
    ///
    /// # Errors
    /// When the wish cannot be written.
    pub fn set_delay(&mut self, delay: Duration) -> io::Result<()> {
        self.wishes.delay = delay;
        self.wish()
    }

    /// How calls fail from now on.
    ///
    /// # Errors
    /// When the wish cannot be written.
    pub fn set_failure(&mut self, failure: Option<Failure>) -> io::Result<()> {
        self.wishes.failure = failure;
        self.wish()
    }

    /// Replaces the control file as a whole: a process may read it at any moment.
    fn wish(&self) -> io::Result<()> {
        let failure = match self.wishes.failure {
            None => "",
            Some(Failure::SyncEio) => " sync=eio",
            Some(Failure::SyncEnospc) => " sync=enospc",
            Some(Failure::Full) => " full",
        };
        let text = format!("delay={}{failure}", self.wishes.delay.as_millis());
        let new = self.dir.join("control.new");
        File::create(&new)?.write_all(text.as_bytes())?;
        fs::rename(new, self.dir.join("control"))
    }

    /// The power goes: every watched file loses what no sync has made durable. The processes that
    /// have them open must be dead.
    ///
    /// # Errors
    /// When a file or a log cannot be read or written.
    pub fn cut(&self, tail: Tail) -> io::Result<Vec<Taken>> {
        let mut taken = Vec::new();
        let mut logs = self.logs()?;
        for path in self.files()? {
            let Some(log) = logs.remove(&name(&path)?) else { continue };
            let text = fs::read(&log)?;
            taken.extend(undo(&path, &Log::parse(&text), tail)?);
            fs::remove_file(log)?;
        }
        // Of files that were deleted: a cut does not bring them back.
        for log in logs.into_values() {
            fs::remove_file(log)?;
        }
        Ok(taken)
    }

    /// How many syncs of watched files have ended well since the last cut.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn syncs(&self) -> io::Result<u64> {
        let mut syncs = 0;
        for log in self.logs()?.into_values() {
            syncs += Log::parse(&fs::read(log)?).syncs;
        }
        Ok(syncs)
    }

    /// The logs by their names.
    fn logs(&self) -> io::Result<HashMap<OsString, PathBuf>> {
        let mut found = HashMap::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if let (Some(stem), Some("undo")) =
                (path.file_stem(), path.extension().and_then(|extension| extension.to_str()))
            {
                found.insert(stem.to_owned(), path);
            }
        }
        Ok(found)
    }

    /// All files under the roots.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders = self.roots.clone();
        while let Some(folder) = folders.pop() {
            if folder == self.dir {
                continue;
            }
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// The name of a file's log, without its ending: the file's number and when it was made.
fn name(path: &Path) -> io::Result<OsString> {
    let metadata = fs::metadata(path)?;
    let born = metadata.created()?.duration_since(std::time::UNIX_EPOCH);
    let born = born.map_err(io::Error::other)?;
    Ok(format!("{}-{}.{}", metadata.ino(), born.as_secs(), born.subsec_nanos()).into())
}

/// Writes back what the log holds, the newest first.
fn undo(path: &Path, log: &Log<'_>, tail: Tail) -> io::Result<Option<Taken>> {
    if log.records.is_empty() {
        return Ok(None);
    }
    let file = OpenOptions::new().write(true).open(path)?;
    let len = file.metadata()?.len();
    let mut restored = 0;
    for record in log.records.iter().rev() {
        file.set_len(record.old_len)?;
        file.write_all_at(record.saved, record.offset)?;
        restored += record.saved.len() as u64;
    }
    let cut = len.saturating_sub(file.metadata()?.len());
    if tail == Tail::Garbage {
        let mut at = len - cut;
        while at < len {
            let noise: [u8; 64] = Random.bytes();
            let part = noise.len().min(usize::try_from(len - at).unwrap_or(usize::MAX));
            file.write_all_at(noise.get(..part).unwrap_or_default(), at)?;
            at += part as u64;
        }
    }
    file.sync_all()?;
    let writes = log.records.len();
    Ok(Some(Taken { path: path.to_owned(), writes, cut, restored }))
}

/// Cargo puts programs and libraries into one folder, and tests and examples one below.
fn library() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let found = program.ancestors().skip(1).take(2).map(|folder| folder.join(LIBRARY));
    let missing = || {
        let text = format!("{LIBRARY} is missing: cargo build -p holdpoint-torture-shim");
        io::Error::new(io::ErrorKind::NotFound, text)
    };
    found.into_iter().find(|path| path.is_file()).ok_or_else(missing)
}
