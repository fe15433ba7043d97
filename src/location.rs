//! Locations of stores: a folder of this machine, or an address of object storage.
//!
//! A text is parsed once, at the option, variable or file that has it. An address is recognized by its scheme alone: a folder is
//! never taken for object storage, nor the reverse. A folder whose name looks like an address is written with `./` before it.
//!
//! Invariant: an address has no user, password or query, so that it can be printed.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// Schemes of object storage: Amazon S3 and services with its interface, Google Cloud Storage, Azure Blob Storage.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// Advice for a text that looks like an address.
const EXPECTED: &str = "use a folder, or an address such as s3://bucket/prefix (also gs:// and az://)";

/// Location of the files of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A prefix in object storage.
    Bucket(Address),
}

/// Address of a prefix in object storage, such as `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: &'static str,
    bucket: String,
    /// Without slashes at its ends; empty: the whole bucket.
    prefix: String,
}

impl Location {
    /// Parses a path or an address.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an address of another scheme, or one that is incomplete. It does not have the text, which may
    /// contain a password.
    pub fn parse(text: impl AsRef<Path>) -> Result<Self> {
        let path = text.as_ref();
        let Some((scheme, rest)) = path.to_str().and_then(|text| text.split_once(':')) else {
            return Ok(Self::Folder(path.to_owned()));
        };
        let known = SCHEMES.into_iter().find(|known| scheme.eq_ignore_ascii_case(known));
        match (known, rest.strip_prefix("//")) {
            (Some(scheme), Some(rest)) => Address::parse(scheme, rest).map(Self::Bucket),
            (Some(scheme), None) => {
                Err(Error::new(ErrorKind::Config, format!("`{scheme}:` is not a folder of a store")).advice(format!(
                    "use an address such as {scheme}://bucket/prefix, or ./{scheme}: for a folder of this name"
                )))
            }
            (None, Some(_)) if is_scheme(scheme) => {
                Err(Error::new(ErrorKind::Config, format!("unknown scheme `{scheme}` of a store")).advice(EXPECTED))
            }
            _ => Ok(Self::Folder(path.to_owned())),
        }
    }

    /// A folder with a relative path is taken to be below another folder.
    #[must_use]
    pub fn below(self, folder: &Path) -> Self {
        match self {
            Self::Folder(path) => Self::Folder(folder.join(path)),
            bucket @ Self::Bucket(_) => bucket,
        }
    }
}

impl Address {
    fn parse(scheme: &'static str, rest: &str) -> Result<Self> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        // Any of these means the same in an address and in the name of an object.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=+~".contains(c);
        let is_name = |name: &str| !name.is_empty() && ![".", ".."].contains(&name) && name.chars().all(is_plain);
        if !is_name(bucket) || !(prefix.is_empty() || prefix.split('/').all(is_name)) {
            let expected =
                "expected letters, digits and - _ . = + ~ in the names of the bucket and of each part of the prefix";
            return Err(Error::new(ErrorKind::Config, format!("invalid {scheme} address of a store: {expected}"))
                .advice(format!("use an address such as {scheme}://bucket/prefix")));
        }
        Ok(Self { scheme, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// True for the scheme of an address. A letter alone is a drive.
fn is_scheme(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.len() > 1 && text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(plain)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Bucket(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, bucket, prefix } = self;
        write!(f, "{scheme}://{bucket}")?;
        if prefix.is_empty() { Ok(()) } else { write!(f, "/{prefix}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_text_is_a_folder_an_address_or_an_error() {
        let folders = [
            "mentions",
            "/srv/a b",
            "./s3:",
            "./s3://bucket",
            "a:b",
            "C:\\stores",
            "C://stores",
            "",
            "mentions/s3://b",
        ];
        each(folders, |text| assert_eq!(Location::parse(text).expect(text), Location::Folder(text.into())));
        let addresses = [
            ("s3://bucket", "s3://bucket"),
            ("S3://bucket/", "s3://bucket"),
            ("s3://bucket/a/b=1/", "s3://bucket/a/b=1"),
            ("gs://bucket/a", "gs://bucket/a"),
            ("az://container/a", "az://container/a"),
        ];
        each(addresses, |(text, shown)| {
            let location = Location::parse(text).expect(text);
            assert_eq!(location.to_string(), shown);
            assert!(matches!(&location, Location::Bucket(_)), "{location:?}");
            assert_eq!(location.clone().below(Path::new("/etc")), location);
        });
        let wrong = [
            "s3:",
            "s3:/bucket",
            "s3:bucket",
            "S3:mentions",
            "s3://",
            "s3:///a",
            "s3://key:secret@bucket/a",
            "s3://bucket//a",
            "s3://bucket/../a",
            "s3://bucket/a?versionId=secret",
            "s3://bucket/a%20b",
            "file:///srv/secret",
            "http://secret/a",
            "s3a://secret",
        ];
        each(wrong, |text| {
            let error = Location::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(!error.to_string().contains("secret") && error.remedy().is_some(), "{error}");
        });
    }

    #[test]
    fn a_relative_folder_is_below_the_folder_of_its_file() {
        let below = |text: &str| Location::parse(text).expect(text).below(Path::new("/etc")).to_string();
        assert_eq!((below("mentions").as_str(), below("/srv/mentions").as_str()), ("/etc/mentions", "/srv/mentions"));
    }
}
