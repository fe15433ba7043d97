//! Small files that are the user's alone and that several processes share: read without waiting, replaced whole.
//!
//! A path may name anything by now: a pipe, a device, a folder. Opening such a file could wait for ever, so only regular files
//! are opened, without blocking. What is written takes the old file's place at once or not at all, after it has reached the
//! disk: whoever is killed leaves the old content or the new one, never a part. Files are readable by their owner only.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// The text of a file; `None` where there is no such file.
///
/// # Errors
/// Those of the system, and `InvalidInput` for what is no regular file.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Replaces a file, or makes it along with its folder.
///
/// # Errors
/// Those of the system.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = folder_of(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The new name is on the disk once its folder is.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all()?;
    }
    Ok(())
}

/// Writes a new file.
///
/// # Errors
/// Those of the system; `AlreadyExists` where something has the name.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    open(path, OpenOptions::new().write(true).create_new(true))?.write_all(text.as_bytes())
}

/// A file that processes lock to take turns, made along with its folder where it is missing. It is never written to.
///
/// # Errors
/// Those of the system, and `InvalidInput` for what is no regular file.
pub(crate) fn lockable(path: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder_of(path))?;
    open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

#[cfg(all(unix, feature = "shell"))]
/// Takes the reading rights of others from a file, where it is there.
///
/// # Errors
/// Those of the system.
pub(crate) fn keep_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(OWNER_ONLY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reading and writing, for the owner.
#[cfg(unix)]
const OWNER_ONLY: u32 = 0o600;

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(OWNER_ONLY).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_private_and_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deeper/file");
        assert_eq!(read(&path).expect("nothing"), None);
        for text in ["first", "second, and longer"] {
            replace(&path, text).expect("written");
            assert_eq!(read(&path).expect("read").as_deref(), Some(text));
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, OWNER_ONLY);
        }
        create(&path, "third").expect_err("it is there");
        assert_eq!(
            std::fs::read_dir(folder.path().join("deeper")).expect("a folder").count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn what_is_no_regular_file_is_an_error_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            read(path).expect_err("no regular file");
            lockable(path).expect_err("no regular file");
        }
    }
}
