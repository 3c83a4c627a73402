//! The files that are watched, each with its undo log.

use std::{collections::HashMap, ffi::CString, mem::MaybeUninit, sync::Once};

use libc::c_int;

use crate::{
    format::{HEADER, Record, number},
    lock::Lock,
    real::{give_up, real},
};

/// From this number on the shim keeps its own files, out of the way of the program's.
const OWN_FILES: c_int = 500;

/// What identifies a file over renames, and not over a deletion: numbers of files are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// A file in use.
pub(crate) struct File {
    fd: c_int,
    key: Key,
    /// Its length.
    pub(crate) len: u64,
}

/// An undo log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log(c_int);

/// A place in an undo log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    generation: u64,
    at: u64,
}

/// The environment's settings and the logs that are open.
struct Watched {
    dir: String,
    roots: Vec<String>,
    logs: Option<HashMap<Key, Option<Log>>>,
}

static WATCHED: Lock<Option<Watched>> = Lock::new(None);

/// Reads the environment, once.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let dir = std::env::var("HOLDPOINT_SHIM_DIR").unwrap_or_default();
        let roots = std::env::var("HOLDPOINT_SHIM_ROOTS").unwrap_or_default();
        if dir.is_empty() || roots.is_empty() {
            return;
        }
        let roots = roots.split(':').map(|root| format!("{}/", root.trim_end_matches('/')));
        let roots = roots.collect();
        WATCHED.with(|watched| *watched = Some(Watched { dir, roots, logs: None }));
        // SAFETY: the three functions do only what may be done around a fork.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    });
}

unsafe extern "C" fn before() {
    WATCHED.close();
}

unsafe extern "C" fn after() {
    WATCHED.open();
}

/// A child opens logs of its own: locks on files belong to whoever opened them.
unsafe extern "C" fn in_child() {
    // SAFETY: `before` has closed the lock in this very thread.
    if let Some(watched) = unsafe { &mut *WATCHED.closed() } {
        for log in watched.logs.take().into_iter().flatten().filter_map(|(_, log)| log) {
            // SAFETY: the descriptor is ours and used by nobody any more.
            unsafe { libc::close(log.0) };
        }
    }
    WATCHED.open();
}

/// A watched file, its log, and the folder of the logs and of the control file.
pub(crate) type Found<'a> = (&'a File, Log, &'a str);

/// Does something with a watched file while no other thread does so; without one when the file is
/// not watched, and then whoever else does what.
pub(crate) fn with_log<R>(fd: c_int, act: impl FnOnce(Option<Found<'_>>) -> R) -> R {
    begin();
    let Some(file) = File::of(fd) else { return act(None) };
    let mut act = Some(act);
    let done = WATCHED.with(|watched| {
        let watched = watched.as_mut()?;
        let log = watched.log_of(&file)?;
        // It may have grown while we waited.
        let file = File::of(fd)?;
        act.take().map(|act| act(Some((&file, log, &watched.dir))))
    });
    match (done, act) {
        (Some(result), _) => result,
        (None, Some(act)) => act(None),
        (None, None) => give_up("an action ran without a result"),
    }
}

/// Does something while no other thread touches a log.
pub(crate) fn alone<R>(act: impl FnOnce() -> R) -> R {
    WATCHED.with(|_| act())
}

impl Watched {
    fn log_of(&mut self, file: &File) -> Option<Log> {
        let logs = self.logs.get_or_insert_with(HashMap::new);
        if let Some(known) = logs.get(&file.key) {
            return *known;
        }
        let path = file.path();
        let is_watched = path.as_ref().is_some_and(|path| {
            self.roots.iter().any(|root| path.starts_with(root)) && !path.starts_with(&self.dir)
        });
        let log = is_watched.then(|| Log::open(&self.dir, &file.key));
        logs.insert(file.key, log);
        log
    }
}

impl File {
    /// The file behind a descriptor; none when it is no file, or has no name any more.
    fn of(fd: c_int) -> Option<Self> {
        let mut found = MaybeUninit::<libc::statx>::uninit();
        let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
        // SAFETY: the path is empty and the buffer is as large as the call fills.
        let done =
            unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, found.as_mut_ptr()) };
        if done != 0 {
            return None;
        }
        // SAFETY: the call has filled it.
        let found = unsafe { found.assume_init() };
        let is_file = u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG;
        (is_file && found.stx_nlink > 0).then_some(Self {
            fd,
            key: Key {
                device: (found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                born: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
            },
            len: found.stx_size,
        })
    }

    fn path(&self) -> Option<String> {
        let link = CString::new(format!("/proc/self/fd/{}", self.fd)).ok()?;
        let mut path = vec![0_u8; 4096];
        // SAFETY: the link ends with a zero and the buffer has the length that is told.
        let len = unsafe { libc::readlink(link.as_ptr(), path.as_mut_ptr().cast(), path.len()) };
        path.truncate(usize::try_from(len).ok()?);
        String::from_utf8(path).ok()
    }

    /// Where the next plain write goes.
    pub(crate) fn position(&self) -> u64 {
        // SAFETY: both calls only ask.
        let (flags, at) = unsafe {
            (libc::fcntl(self.fd, libc::F_GETFL), libc::lseek(self.fd, 0, libc::SEEK_CUR))
        };
        if flags & libc::O_APPEND != 0 { self.len } else { u64::try_from(at).unwrap_or(self.len) }
    }

    /// The bytes of the file there, as far as it has any.
    fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let len = len.min(self.len.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        if bytes.is_empty() || self.fill(self.fd, &mut bytes, offset) {
            return bytes;
        }
        // A descriptor that can only write.
        let link = CString::new(format!("/proc/self/fd/{}", self.fd)).unwrap_or_default();
        // SAFETY: the link ends with a zero.
        let reader = unsafe { libc::open(link.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if !self.fill(reader, &mut bytes, offset) {
            give_up("cannot read what is about to be overwritten");
        }
        // SAFETY: we have opened it.
        unsafe { libc::close(reader) };
        bytes
    }

    fn fill(&self, fd: c_int, bytes: &mut [u8], offset: u64) -> bool {
        let (mut done, offset) = (0, offset.cast_signed());
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset + done as i64;
            // SAFETY: the buffer has the length that is told.
            let read = unsafe { libc::pread(fd, rest.as_mut_ptr().cast(), rest.len(), at) };
            match usize::try_from(read) {
                Ok(0) | Err(_) => return false,
                Ok(read) => done += read,
            }
        }
        true
    }
}

impl Log {
    fn open(dir: &str, key: &Key) -> Self {
        let Key { inode, born, .. } = key;
        let path = CString::new(format!("{dir}/{inode}-{}.{}.undo", born.0, born.1));
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero; results are checked.
        let own = unsafe {
            let fd = libc::open(path.unwrap_or_default().as_ptr(), flags, 0o600);
            let own = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, OWN_FILES);
            libc::close(fd);
            own
        };
        if own < 0 {
            give_up("cannot open an undo log");
        }
        let log = Self(own);
        log.locked(libc::LOCK_EX, || {
            if log.len() < HEADER as u64 {
                log.append(&[0; HEADER]);
            }
        });
        log
    }

    /// Holds the log against other processes meanwhile: writers share it, syncs have it alone.
    pub(crate) fn shared<R>(self, act: impl FnOnce() -> R) -> R {
        self.locked(libc::LOCK_SH, act)
    }

    fn locked<R>(self, how: c_int, act: impl FnOnce() -> R) -> R {
        // SAFETY: the descriptor is ours. A signal may interrupt the wait.
        while unsafe { libc::flock(self.0, how) } != 0 {}
        let result = act();
        let error = errno();
        // SAFETY: as above.
        unsafe { libc::flock(self.0, libc::LOCK_UN) };
        set_errno(error);
        result
    }

    /// Notes what a write is about to cover.
    pub(crate) fn note(self, file: &File, offset: u64, len: u64) {
        let saved = file.read(offset, len);
        self.append(&Record { offset, len, old_len: file.len, saved: &saved }.encode());
    }

    /// Notes what the end of the file is about to lose.
    pub(crate) fn note_cut(self, file: &File, new_len: u64) {
        let saved = file.read(new_len, file.len.saturating_sub(new_len));
        self.append(&Record { offset: new_len, len: 0, old_len: file.len, saved: &saved }.encode());
    }

    /// What was written until now: a sync that begins now makes it durable.
    pub(crate) fn point(self) -> Point {
        self.locked(libc::LOCK_EX, || Point { generation: self.number(8), at: self.len() })
    }

    /// The sync that began at `point` has ended well.
    pub(crate) fn synced(self, point: Point) {
        self.locked(libc::LOCK_EX, || {
            let syncs = self.number(16) + 1;
            // Emptied meanwhile, because all of it was synced: so was what stood before the point.
            let is_older = self.number(8) != point.generation;
            let synced = if is_older { self.number(0) } else { point.at.max(self.number(0)) };
            if synced != self.len() {
                return self.header([synced, self.number(8), syncs]);
            }
            // Nothing is left to undo.
            self.header([HEADER as u64, self.number(8) + 1, syncs]);
            // SAFETY: the descriptor is ours.
            unsafe { (real().ftruncate)(self.0, HEADER as i64) };
        });
    }

    fn len(self) -> u64 {
        // SAFETY: only asks.
        u64::try_from(unsafe { libc::lseek(self.0, 0, libc::SEEK_END) }).unwrap_or(0)
    }

    fn number(self, at: usize) -> u64 {
        let mut header = [0_u8; HEADER];
        // SAFETY: the buffer has the length that is told.
        let read = unsafe { libc::pread(self.0, header.as_mut_ptr().cast(), HEADER, 0) };
        if read != HEADER as isize {
            give_up("cannot read an undo log");
        }
        number(&header, at)
    }

    /// Writes the header with one `pwrite`. The log is opened to append, and Linux appends with
    /// `pwrite` too on such a descriptor, so another one is used.
    fn header(self, numbers: [u64; 3]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let link = CString::new(format!("/proc/self/fd/{}", self.0)).unwrap_or_default();
        // SAFETY: the link ends with a zero, the bytes are valid, results are checked.
        let written = unsafe {
            let fd = libc::open(link.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            let written = (real().pwrite)(fd, bytes.as_ptr().cast(), bytes.len(), 0);
            libc::close(fd);
            written
        };
        if written != HEADER as isize {
            give_up("cannot write an undo log");
        }
    }

    fn append(self, bytes: &[u8]) {
        // SAFETY: the bytes are valid for the call.
        let written = unsafe { (real().write)(self.0, bytes.as_ptr().cast(), bytes.len()) };
        if usize::try_from(written) != Ok(bytes.len()) {
            give_up("cannot append to an undo log");
        }
    }
}

/// The error of the last call.
pub(crate) fn errno() -> c_int {
    // SAFETY: the place always exists.
    unsafe { *libc::__errno_location() }
}

/// Sets the error that the program sees.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the place always exists.
    unsafe { *libc::__errno_location() = error };
}
