//! The functions whose place the shim takes.

use std::{ffi::CStr, sync::OnceLock};

use libc::{c_int, c_void, iovec, off_t, size_t, ssize_t};

/// The C library's own functions.
pub(crate) struct Real {
    pub(crate) write: unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t,
    pub(crate) writev: unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t,
    pub(crate) pwrite: unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t,
    pub(crate) pwritev: unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t,
    pub(crate) ftruncate: unsafe extern "C" fn(c_int, off_t) -> c_int,
    pub(crate) fsync: unsafe extern "C" fn(c_int) -> c_int,
    pub(crate) fdatasync: unsafe extern "C" fn(c_int) -> c_int,
}

/// Looks the functions up, once.
pub(crate) fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    REAL.get_or_init(|| {
        // SAFETY: these are the types of the functions of these names in every C library for
        // 64-bit Linux, where the forms with and without `64` are one.
        unsafe {
            Real {
                write: find(c"write"),
                writev: find(c"writev"),
                pwrite: find(c"pwrite"),
                pwritev: find(c"pwritev"),
                ftruncate: find(c"ftruncate"),
                fsync: find(c"fsync"),
                fdatasync: find(c"fdatasync"),
            }
        }
    })
}

/// The function of that name.
///
/// # Safety
/// `F` is its type, a pointer.
unsafe fn find<F: Copy>(name: &CStr) -> F {
    // SAFETY: the name ends with a zero; the answer is checked.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() || size_of::<F>() != size_of_val(&found) {
        give_up("the C library lacks a function");
    }
    // SAFETY: both are pointers, and the function has this type, as the caller says.
    unsafe { std::mem::transmute_copy(&found) }
}

/// Ends the program that the shim is in: a power cut that forgets something would prove nothing.
pub(crate) fn give_up(why: &str) -> ! {
    let text = format!("holdpoint torture shim: {why}\n");
    // SAFETY: the bytes are valid for the call, which writes past all of our own functions.
    unsafe { libc::syscall(libc::SYS_write, 2, text.as_ptr(), text.len()) };
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
