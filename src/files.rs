//! Small private files shared by several processes: non-blocking reads, atomic replacement.
//!
//! A configured path may turn out to be a pipe, a device or a directory. Opening one of those could block forever, so
//! files are opened non-blocking and anything but a regular file is rejected. Writes go to a temporary file that is
//! synced and then renamed over the old one, so a killed process leaves either the old or the new content. Files are
//! readable by their owner only.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// I/O errors; `InvalidInput` for anything but a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Replaces a file atomically, creating it and its folder if missing.
///
/// # Errors
/// I/O errors.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = folder_of(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The rename is durable only once the folder is synced.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all()?;
    }
    Ok(())
}

/// Writes a new file.
///
/// # Errors
/// I/O errors; `AlreadyExists` if the path is taken.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    create_empty(path)?.write_all(text.as_bytes())
}

/// Opens a new file for writing.
///
/// # Errors
/// I/O errors; `AlreadyExists` if the path is taken.
pub(crate) fn create_empty(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().write(true).create_new(true))
}

/// Creates a folder and its parents if missing, for their owner only. Existing folders keep their permissions.
///
/// # Errors
/// I/O errors.
#[cfg(feature = "store")]
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Opens a lock file, creating it and its folder if missing. It is never written to.
///
/// # Errors
/// I/O errors; `InvalidInput` for anything but a regular file.
pub(crate) fn lockable(path: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder_of(path))?;
    open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

#[cfg(all(unix, feature = "shell"))]
/// Restricts an existing file to its owner; a missing file is not an error.
///
/// # Errors
/// I/O errors.
pub(crate) fn keep_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(OWNER_ONLY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Read and write permission for the owner only.
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
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
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
        assert_eq!(read(&path).expect("missing file"), None);
        for text in ["first", "second, and longer"] {
            replace(&path, text).expect("written");
            assert_eq!(read(&path).expect("read").as_deref(), Some(text));
            let mode = std::fs::metadata(&path).expect("metadata").permissions().mode();
            assert_eq!(mode & 0o777, OWNER_ONLY);
        }
        create(&path, "third").expect_err("file exists");
        assert_eq!(
            std::fs::read_dir(folder.path().join("deeper")).expect("a folder").count(),
            1,
            "no temporary files remain"
        );
    }

    #[test]
    fn what_is_no_regular_file_is_an_error_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            read(path).expect_err("not a regular file");
            lockable(path).expect_err("not a regular file");
        }
    }
}
