//! The `ASSAY_…` variables in a text, and which of them are settings.

use std::collections::{BTreeMap, BTreeSet};

use assay_platform::objects::Objects;
use serde_json::Value;

/// Prefix of the settings under `objects.options`, which the library of the object store defines.
const STORE_OPTIONS: &str = "ASSAY_OBJECTS__OPTIONS__";

/// The default settings, which have every key.
pub fn defaults() -> Value {
    let text = include_str!("../../../../config/default.toml");
    assay_platform::settings::load(text, None, BTreeMap::new()).unwrap()
}

/// Every name that begins with `ASSAY_`, in comments too; placeholders such as `ASSAY_…` are skipped.
pub fn variables(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let starts = text.match_indices("ASSAY_").filter(|(at, _)| !text[..*at].ends_with(is_part));
    let names = starts.map(|(at, _)| text[at..].chars().take_while(|c| is_part(*c)).collect::<String>());
    names.filter(|name| name != "ASSAY_").collect()
}

/// Whether the executable knows the variable.
pub fn is_setting(variable: &str, defaults: &Value) -> bool {
    let variable = variable.strip_suffix("_FILE").unwrap_or(variable);
    if let Some(option) = variable.strip_prefix(STORE_OPTIONS) {
        // Opening a store connects to nothing, and refuses unknown options.
        let options = [
            ("aws_region", "x"),
            ("aws_access_key_id", "x"),
            ("aws_secret_access_key", "x"),
            (option, "true"),
        ];
        return Objects::open("s3://b", options.map(|(name, value)| (name.to_lowercase(), value.to_owned())))
            .is_ok();
    }
    let keys = variable["ASSAY_".len()..].to_lowercase();
    let setting = keys.split("__").try_fold(defaults, |section, key| section.get(key));
    setting.is_some_and(|setting| !setting.is_object())
}
