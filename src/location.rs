//! Locations of stores: a folder of this machine, or an address of object storage; the addresses of catalogs; and which hosts are
//! this machine.
//!
//! A text is parsed once, at the option, variable or file that has it. An address is recognized by its scheme alone: a folder is
//! never taken for object storage, nor the reverse. A folder whose name looks like an address is written with `./` before it.
//!
//! Invariant: an address has no user, password or query, so that it can be printed.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use url::Url;

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
    /// Scheme: s3, gs or az.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Name of the bucket or container.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Prefix of all names, without slashes at its ends; empty: none.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn parse(scheme: &'static str, rest: &str) -> Result<Self> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        // Any of these means the same in an address and in the name of an object.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=+".contains(c);
        let is_name = |name: &str| !name.is_empty() && ![".", ".."].contains(&name) && name.chars().all(is_plain);
        if !is_name(bucket) || !(prefix.is_empty() || prefix.split('/').all(is_name)) {
            let expected =
                "expected letters, digits and - _ . = + in the names of the bucket and of each part of the prefix";
            return Err(Error::new(ErrorKind::Config, format!("invalid {scheme} address of a store: {expected}"))
                .advice(format!("use an address such as {scheme}://bucket/prefix")));
        }
        Ok(Self { scheme, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// Address of a catalog in PostgreSQL, such as `postgres://user@host/database?schema=mentions`. It is printed without user, password
/// and options.
#[derive(Clone)]
pub struct CatalogUrl {
    /// The address without the schema.
    address: SecretString,
    schema: String,
    /// Server and database.
    shown: String,
    /// True if nothing travels over the network.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    is_local: bool,
}

/// Schema of a catalog if its address names none.
const SCHEMA: &str = "savedsearch";

impl CatalogUrl {
    /// Parses an address. `password`: if it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an address of another kind. It does not have the text, which may contain a password.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self> {
        let bad = |what: &str| {
            Error::new(ErrorKind::Config, format!("invalid address of a catalog: {what}"))
                .advice("use an address such as postgres://user@host/database?schema=savedsearch")
        };
        let mut url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
        if !["postgres", "postgresql"].contains(&url.scheme()) {
            return Err(bad("expected the scheme postgres"));
        }
        let mut schema = SCHEMA.to_owned();
        let (mut options, mut hosts) = (Vec::new(), Vec::new());
        let given = url.query().unwrap_or_default().split('&').filter(|option| !option.is_empty());
        for (option, (name, value)) in given.zip(url.query_pairs()) {
            match name.as_ref() {
                "schema" => schema = value.into_owned(),
                "host" | "hostaddr" => {
                    hosts.push(value.into_owned());
                    options.push(option.to_owned());
                }
                _ => options.push(option.to_owned()),
            }
        }
        let is_letter = |c: char| c.is_ascii_lowercase() || c == '_';
        let plain = schema.starts_with(is_letter) && schema.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        if !plain || schema.len() > 63 || schema.starts_with("pg_") {
            return Err(bad("expected lowercase letters, digits and _ in the name of the schema"));
        }
        let has_own = url.password().is_some() || options.iter().any(|option| option.starts_with("password="));
        if let Some(password) = password.filter(|_| !has_own) {
            // An address without a user or a host cannot have one there.
            if url.username().is_empty() || url.set_password(Some(password)).is_err() {
                let password: String = url::form_urlencoded::byte_serialize(password.as_bytes()).collect();
                options.push(format!("password={}", password.replace('+', "%20")));
            }
        }
        url.set_query(Some(&options.join("&")).filter(|options| !options.is_empty()).map(String::as_str));
        hosts.extend(url.host_str().filter(|host| !host.is_empty()).map(str::to_owned));
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown = format!("postgres://{}{port}{}", hosts.join(","), url.path());
        let is_socket = |host: &String| host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f");
        // An address without a host is that of a socket of this machine.
        let is_local = hosts.iter().all(|host| is_socket(host) || is_loopback_host(host));
        Ok(Self { address: String::from(url).into(), schema, shown, is_local })
    }

    /// The address with its password, without the schema.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn expose(&self) -> &str {
        self.address.expose_secret()
    }

    /// Name of the schema.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// True if the server is on this machine, so that nothing travels over the network.
    #[cfg_attr(not(feature = "shared"), allow(dead_code, reason = "other builds refuse such a store"))]
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }
}

impl PartialEq for CatalogUrl {
    fn eq(&self, other: &Self) -> bool {
        (self.address.expose_secret(), &self.schema) == (other.address.expose_secret(), &other.schema)
    }
}

impl Eq for CatalogUrl {}

impl fmt::Display for CatalogUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)?;
        if self.schema == SCHEMA { Ok(()) } else { write!(f, "?schema={}", self.schema) }
    }
}

impl fmt::Debug for CatalogUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogUrl({self})")
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

/// True if a URL is of this machine, so that nothing travels over the network.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// True for the host of a URL that is this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    // An address of version 6 has brackets.
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
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
            "s3://bucket/~secret",
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
    fn loopback_addresses_are_of_this_machine() {
        let cases = [
            ("http://localhost:8080/v4", true),
            ("http://LOCALHOST/", true),
            ("http://127.0.0.1/", true),
            ("http://127.1/", true),
            ("http://127.200.3.4/", true),
            ("http://[::1]:8080/", true),
            ("http://localhost.example.com/", false),
            ("http://127.0.0.1.example.com/", false),
            ("http://10.0.0.1/", false),
            ("http://[::2]/", false),
            ("http://0.0.0.0/", false),
            ("file:///localhost", false),
        ];
        each(cases, |(url, expected)| {
            assert_eq!(is_loopback(&Url::parse(url).expect(url)), expected, "{url}");
        });
    }

    #[test]
    fn an_address_of_a_catalog_is_printed_without_secrets() {
        let cases = [
            ("postgres://me:secret@db.example.com:5433/mentions", "postgres://db.example.com:5433/mentions", false),
            ("postgresql://me@localhost/mentions?schema=news", "postgres://localhost/mentions?schema=news", true),
            ("postgres://127.0.0.1/a?sslmode=disable&password=secret", "postgres://127.0.0.1/a", true),
            ("postgres://[::1]/a", "postgres://[::1]/a", true),
            ("postgres://%2Frun%2Fpostgresql/a", "postgres://%2Frun%2Fpostgresql/a", true),
            ("postgres:///a?host=/run/postgresql", "postgres:///run/postgresql/a", true),
        ];
        each(cases, |(text, shown, is_local)| {
            let url = CatalogUrl::parse(text, Some("secret")).expect(text);
            assert_eq!((url.to_string().as_str(), url.is_local()), (shown, is_local));
            assert_eq!(format!("{url:?}"), format!("CatalogUrl({shown})"));
            assert!(url.expose().contains("secret") && !url.expose().contains("schema"), "{}", url.expose());
        });
        let wrong = [
            "secret",
            "mysql://secret@host/a",
            "postgres://host/a?schema=Secret",
            "postgres://host/a?schema=secret;drop",
            "postgres://host/a?schema=pg_secret",
            "postgres://a:secret@host:port/b",
        ];
        each(wrong, |text| {
            let error = CatalogUrl::parse(text, None).expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        });
    }

    #[test]
    fn a_relative_folder_is_below_the_folder_of_its_file() {
        let below = |text: &str| Location::parse(text).expect(text).below(Path::new("/etc")).to_string();
        assert_eq!((below("mentions").as_str(), below("/srv/mentions").as_str()), ("/etc/mentions", "/srv/mentions"));
    }
}
