//! Whether a folder is on a network file system, where the locks of SQLite cannot be trusted.

use std::{fs, path::Path};

/// The kind of network file system that the folder is on; none when it is on a local one, or on
/// a system that does not say.
pub(crate) fn file_system(folder: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    kind_of(&mounts, folder)
}

fn kind_of(mounts: &str, folder: &Path) -> Option<String> {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((unescaped(words.next()?), words.next()?.to_owned()))
    };
    let all = mounts.lines().filter_map(mount);
    let (_, kind) = all
        .filter(|(point, _)| folder.starts_with(point))
        // Of two mounts at one place the later one is seen.
        .max_by_key(|(point, _)| point.len())?;
    let is_network = kind.starts_with("nfs") || kind.starts_with("smb") || kind == "cifs";
    is_network.then_some(kind)
}

/// The system writes spaces and the like in octal.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(path.to_owned(), |path, (octal, plain)| path.replace(octal, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_decides() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\n\
            server:/home /home nfs4 rw 0 0\n\
            /dev/sdb1 /home/local\\040disk xfs rw 0 0\n\
            //box/share /mnt/share cifs rw 0 0\n\
            //box/old /mnt/old smb3 rw 0 0\n";
        let check = |folder: &str, expect: Option<&str>| {
            assert_eq!(kind_of(mounts, Path::new(folder)).as_deref(), expect, "{folder}");
        };
        check("/var/lib", None);
        check("/home", Some("nfs4"));
        check("/home/ann/data", Some("nfs4"));
        check("/homes", None);
        check("/home/local disk/data", None);
        check("/mnt/share", Some("cifs"));
        check("/mnt/old/data", Some("smb3"));
    }
}
