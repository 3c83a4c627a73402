//! A library to be preloaded into the processes that own a store's files.
//!
//! It takes the place of the functions that write, cut and sync files. Before a write it saves what
//! the write covers in an undo log; when a sync has ended well, everything that was written before
//! the sync *began* is struck off the log. A power cut is then: kill the processes, and write back
//! what the logs hold. So a file that is overwritten in place, such as SQLite's write-ahead log
//! after a checkpoint, loses exactly the bytes that no sync covered and keeps its older ones.
//!
//! Watched are the files under `HOLDPOINT_SHIM_ROOTS` (paths with colons between), logs and the
//! control file lie in `HOLDPOINT_SHIM_DIR`; without both the library does nothing. Logs outlive
//! the process, and several processes may share a file.
//!
//! What it does not model: lost or reordered renames, creations and deletions; the torn sector
//! inside a write (the harness can put garbage there); files that were written through a memory
//! map, through stdio or by the kernel (`copy_file_range`), whose bytes count as durable at once;
//! a sync that lies. Files opened with `O_SYNC` would lose too much.

mod control;
mod files;
mod format;
mod lock;
mod real;

use libc::{c_int, c_void, iovec, off_t, size_t, ssize_t};

use crate::{
    control::Control,
    files::{set_errno, with_log},
    real::real,
};

/// Saves what a write covers, then lets it happen. `place` is where; none is where the file stands.
fn around_write(
    fd: c_int,
    place: Option<off_t>,
    len: usize,
    act: impl FnOnce() -> ssize_t,
) -> ssize_t {
    with_log(fd, |watched| {
        let Some((file, log, folder)) = watched else { return act() };
        let offset = place.map_or_else(|| file.position(), off_t::cast_unsigned);
        let len = len as u64;
        if offset + len > file.len && Control::read(folder).is_full {
            set_errno(libc::ENOSPC);
            return -1;
        }
        log.shared(|| {
            log.note(file, offset, len);
            act()
        })
    })
}

/// Syncs, as slowly or badly as the harness wants it. Other threads write meanwhile.
fn around_sync(fd: c_int, act: impl FnOnce() -> c_int) -> c_int {
    let begun = with_log(fd, |watched| {
        let (_, log, folder) = watched?;
        Some((log, log.point(), Control::read(folder)))
    });
    let Some((log, point, control)) = begun else { return act() };
    std::thread::sleep(control.delay);
    if let Some(error) = control.sync {
        set_errno(error);
        return -1;
    }
    let result = act();
    if result == 0 {
        // The descriptor may be closed by now; the log is open as long as the process lives.
        files::alone(|| log.synced(point));
    }
    result
}

fn around_truncate(fd: c_int, len: off_t, act: impl FnOnce() -> c_int) -> c_int {
    with_log(fd, |watched| {
        let Some((file, log, _)) = watched else { return act() };
        log.shared(|| {
            log.note_cut(file, len.cast_unsigned());
            act()
        })
    })
}

/// The bytes of all parts together.
///
/// # Safety
/// `parts` points to `count` parts.
unsafe fn sum(parts: *const iovec, count: c_int) -> usize {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as the caller says.
    let parts = unsafe { std::slice::from_raw_parts(parts, count) };
    parts.iter().map(|part| part.iov_len).sum()
}

/// `write`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    around_write(fd, None, len, || unsafe { (real().write)(fd, bytes, len) })
}

/// `writev`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    let len = unsafe { sum(parts, count) };
    // SAFETY: as above.
    around_write(fd, None, len, || unsafe { (real().writev)(fd, parts, count) })
}

/// `pwrite`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    around_write(fd, Some(at), len, || unsafe { (real().pwrite)(fd, bytes, len, at) })
}

/// `pwrite64`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    bytes: *const c_void,
    len: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    unsafe { pwrite(fd, bytes, len, at) }
}

/// `pwritev`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    let len = unsafe { sum(parts, count) };
    // SAFETY: as above.
    around_write(fd, Some(at), len, || unsafe { (real().pwritev)(fd, parts, count, at) })
}

/// `pwritev64`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller's promise is passed on.
    unsafe { pwritev(fd, parts, count, at) }
}

/// `ftruncate`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, len: off_t) -> c_int {
    // SAFETY: the caller's promise is passed on.
    around_truncate(fd, len, || unsafe { (real().ftruncate)(fd, len) })
}

/// `ftruncate64`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, len: off_t) -> c_int {
    // SAFETY: the caller's promise is passed on.
    unsafe { ftruncate(fd, len) }
}

/// `fsync`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: the caller's promise is passed on.
    around_sync(fd, || unsafe { (real().fsync)(fd) })
}

/// `fdatasync`, as the C library has it.
///
/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    // SAFETY: the caller's promise is passed on.
    around_sync(fd, || unsafe { (real().fdatasync)(fd) })
}
