//! Settings from files: `ASSAY_BUS__URL_FILE=/run/secrets/bus_url` sets `bus.url` to the content of the file. Secrets mounted
//! as files then appear neither in the environment nor in an orchestrator's description of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use super::SettingsError;

/// Suffix of a variable whose value is a path.
const SUFFIX: &str = "_FILE";

/// Options of `[objects.options]` whose names end with the suffix but whose values are paths.
const PATH_OPTIONS: [&str; 2] = ["WEB_IDENTITY_TOKEN_FILE", "CONTAINER_AUTHORIZATION_TOKEN_FILE"];

/// Maximum file size: larger than any setting. A mistyped path may name a file of any size.
const MAX_BYTES: u64 = 64 * 1024;

/// Replaces each `_FILE` variable by a variable with the content of its file.
pub(super) fn resolve(
    variables: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, SettingsError> {
    let mut resolved = BTreeMap::new();
    for (name, value) in &variables {
        match setting_of(name) {
            None => resolved.insert(name.clone(), value.clone()),
            Some(setting) if variables.contains_key(setting) => {
                return Err(SettingsError::ValueAndFileSet { variable: setting.to_owned() });
            }
            Some(setting) => resolved.insert(setting.to_owned(), read(name, value)?),
        };
    }
    Ok(resolved)
}

/// The variable that a `…_FILE` variable sets.
fn setting_of(name: &str) -> Option<&str> {
    if PATH_OPTIONS.iter().any(|option| name.to_ascii_uppercase().ends_with(option)) {
        return None;
    }
    name.strip_suffix(SUFFIX)
}

/// Content of the file without the trailing newline of editors and `echo`.
fn read(variable: &str, path: &str) -> Result<String, SettingsError> {
    let refuse = |reason: String| SettingsError::SecretFile {
        variable: variable.to_owned(),
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = String::new();
    // One byte more than the limit, to detect a longer file.
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refuse(format!("it has more than {MAX_BYTES} bytes")));
    }
    let value = text.strip_suffix('\n').unwrap_or(&text);
    let value = value.strip_suffix('\r').unwrap_or(value);
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_one(name: &str, value: &str) -> Result<BTreeMap<String, String>, SettingsError> {
        resolve(BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    fn file(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn value_is_the_file_content_without_trailing_newline() {
        for (content, value) in [
            ("amqp://x", "amqp://x"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            (" a ", " a "),
            ("", ""),
        ] {
            let file = file(content);
            let resolved = resolve_one("ASSAY_BUS__URL_FILE", file.path().to_str().unwrap()).unwrap();
            assert_eq!(resolved, BTreeMap::from([("ASSAY_BUS__URL".to_owned(), value.to_owned())]));
        }
    }

    #[test]
    fn variable_and_its_file_variant_together_are_refused() {
        let variables = [("ASSAY_BUS__URL", "amqp://x"), ("ASSAY_BUS__URL_FILE", "/nowhere")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let error = resolve(BTreeMap::from(variables)).unwrap_err().to_string();
        assert!(error.contains("ASSAY_BUS__URL and ASSAY_BUS__URL_FILE"), "{error}");
    }

    #[test]
    fn unreadable_file_is_named_without_its_content() {
        let error = resolve_one("ASSAY_BUS__URL_FILE", "/nowhere/bus").unwrap_err().to_string();
        assert!(error.contains("ASSAY_BUS__URL_FILE") && error.contains("/nowhere/bus"), "{error}");
        let long = file(&"secret".repeat(20_000));
        let error =
            resolve_one("ASSAY_BUS__URL_FILE", long.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("65536 bytes") && !error.contains("secretsecret"), "{error}");
    }

    #[test]
    fn path_options_of_the_object_store_stay_paths() {
        for name in [
            "ASSAY_OBJECTS__OPTIONS__AWS_WEB_IDENTITY_TOKEN_FILE",
            "ASSAY_OBJECTS__OPTIONS__AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ] {
            let resolved = resolve_one(name, "/var/run/secrets/token").unwrap();
            assert_eq!(resolved.get(name).map(String::as_str), Some("/var/run/secrets/token"));
        }
    }
}
