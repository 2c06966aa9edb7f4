//! The one place that reads configuration: the built-in defaults (`config/default.toml`, which is the reference),
//! then a file, then the environment. An unknown key is an error in each of them.

mod secret_files;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, File, FileFormat};
use serde::de::DeserializeOwned;

/// Prefix of environment variables: `ASSAY_GATEWAY__LISTEN` sets `gateway.listen`.
pub const ENVIRONMENT_PREFIX: &str = "ASSAY";

/// Path of the configuration file; not a setting.
pub const CONFIG_FILE_VARIABLE: &str = "ASSAY_CONFIG";

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The configuration file does not exist.
    #[error("configuration file {0} does not exist")]
    MissingFile(PathBuf),
    /// A variable and its `_FILE` variant are both set.
    #[error("{variable} and {variable}_FILE are both set: keep one of them")]
    ValueAndFileSet {
        /// The variable without `_FILE`.
        variable: String,
    },
    /// The file of a `_FILE` variable cannot be used.
    #[error("{variable} names the file {path}, which cannot be used: {reason}")]
    SecretFile {
        /// The variable, with `_FILE`.
        variable: String,
        /// Path as configured.
        path: String,
        /// Cause.
        reason: String,
    },
    /// The variable's value is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(String),
    /// A key is unknown, missing or of the wrong type.
    #[error(
        "configuration cannot be used: {0} (every key is described in config/default.toml; \
         the variable ASSAY_SECTION__KEY sets `key` of `[section]`)"
    )]
    Invalid(#[from] ConfigError),
}

/// Variables of the client commands; not settings.
pub const CLIENT_VARIABLES: [&str; 2] = ["ASSAY_URL", "ASSAY_API_KEY"];

/// The `ASSAY_…` variables of this process that are settings.
///
/// # Errors
/// When the value of one is not UTF-8.
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub fn environment() -> Result<BTreeMap<String, String>, SettingsError> {
    settings_among(std::env::vars_os())
}

fn settings_among(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>, SettingsError> {
    // Invalid UTF-8 in variables of other programs must not matter.
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with("ASSAY_") && name != CONFIG_FILE_VARIABLE)
        .filter(|(name, _)| !CLIENT_VARIABLES.contains(&name.as_str()))
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(SettingsError::NotUtf8(name)),
        })
        .collect()
}

/// One of [`CLIENT_VARIABLES`], when it is set and not empty.
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub fn client_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether `NO_COLOR` is set and not empty (no-color.org).
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The configuration file named by [`CONFIG_FILE_VARIABLE`].
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub fn configuration_file() -> Option<PathBuf> {
    std::env::var(CONFIG_FILE_VARIABLE).ok().filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Reads settings of type `T`, which must deny unknown fields at every level.
///
/// # Errors
/// When a file is missing, a setting has both a value and a file, or a key is unknown, missing or of the wrong type; the
/// message names it.
pub fn load<T: DeserializeOwned>(
    defaults: &str,
    file: Option<&Path>,
    environment: BTreeMap<String, String>,
) -> Result<T, SettingsError> {
    let mut builder = Config::builder().add_source(File::from_str(defaults, FileFormat::Toml));
    if let Some(path) = file {
        if !path.is_file() {
            return Err(SettingsError::MissingFile(path.to_owned()));
        }
        builder = builder.add_source(File::from(path).format(FileFormat::Toml));
    }
    let environment = secret_files::resolve(environment)?;
    let variables = Environment::with_prefix(ENVIRONMENT_PREFIX)
        .prefix_separator("_")
        .separator("__")
        .source(Some(environment.into_iter().collect()));
    Ok(builder.add_source(variables).build()?.try_deserialize()?)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        gateway: Gateway,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Gateway {
        listen: String,
        max_body_bytes: usize,
    }

    const DEFAULTS: &str = "[gateway]\nlisten = \"127.0.0.1:8080\"\nmax_body_bytes = 10\n";

    fn load_with(name: &str, value: &str) -> Result<Settings, SettingsError> {
        load(DEFAULTS, None, BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[cfg(unix)]
    #[test]
    fn variable_that_is_not_utf8_is_refused_by_name() {
        use std::os::unix::ffi::OsStringExt as _;
        let invalid = || OsString::from_vec(vec![0xFF]);
        let foreign = [("PATH".into(), invalid()), ("ASSAY_URL".into(), invalid())];
        assert_eq!(settings_among(foreign.into_iter()).unwrap(), BTreeMap::new());
        let ours = [("ASSAY_GATEWAY__LISTEN".into(), invalid())];
        let error = settings_among(ours.into_iter()).unwrap_err();
        assert_eq!(error.to_string(), "ASSAY_GATEWAY__LISTEN is not UTF-8");
    }

    #[test]
    fn variable_overrides_default() {
        let settings = load_with("ASSAY_GATEWAY__MAX_BODY_BYTES", "4096").unwrap();
        assert_eq!(
            (settings.gateway.listen.as_str(), settings.gateway.max_body_bytes),
            ("127.0.0.1:8080", 4096)
        );
    }

    #[test]
    fn mistyped_variable_is_named_in_the_error() {
        let error = load_with("ASSAY_GATEWAY__LISTN", "x").unwrap_err().to_string();
        assert!(error.contains("listn"), "{error}");
        let error = load_with("ASSAY_GATEWAY__MAX_BODY_BYTES", "many").unwrap_err().to_string();
        assert!(error.contains("max_body_bytes"), "{error}");
    }

    #[test]
    fn file_variable_sets_the_value() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "4096\n").unwrap();
        let settings =
            load_with("ASSAY_GATEWAY__MAX_BODY_BYTES_FILE", file.path().to_str().unwrap()).unwrap();
        assert_eq!(settings.gateway.max_body_bytes, 4096);
        // An unknown setting is refused with `_FILE`, too.
        let error = load_with("ASSAY_GATEWAY__LISTN_FILE", file.path().to_str().unwrap()).unwrap_err();
        assert!(error.to_string().contains("listn"), "{error}");
    }

    #[test]
    fn missing_configuration_file_is_an_error() {
        let error =
            load::<Settings>(DEFAULTS, Some(Path::new("/nowhere/assay.toml")), BTreeMap::new()).unwrap_err();
        assert!(matches!(error, SettingsError::MissingFile(_)));
    }
}
