//! Settings of the stack's processes.

use std::path::Path;

use anyhow::{Result, anyhow};
use url::Url;

use super::{
    backends::Backends,
    folder::StackFolder,
    gateway_address::GatewayAddress,
    secrets::Secrets,
    settings::{GATEWAY_LISTEN, NOT_FOR_THE_EXECUTABLE, OBJECTS_URL},
};
use crate::{
    launcher::{self, Settings},
    process::ProcessSpec,
};

/// All settings: addresses of backends and services, and secrets.
pub(super) fn settings(
    folder: &StackFolder,
    backends: &Backends,
    secrets: &Secrets,
    gateway: GatewayAddress,
    objects_url: Option<&str>,
) -> Result<Settings> {
    let mut settings = Settings::new();
    for database in launcher::databases() {
        let user = database.owner.user;
        let url = backends.administrator.with_user(user, secrets.password_of(user))?;
        settings.insert(database.setting.to_owned(), url.as_str().to_owned());
    }
    settings.insert("ASSAY_BUS__URL".to_owned(), backends.amqp_url.clone());
    let objects_url = objects_url.map_or_else(|| file_url(&folder.objects()), |url| Ok(url.to_owned()))?;
    settings.insert(OBJECTS_URL.to_owned(), objects_url);
    launcher::set_addresses(&mut settings)?;
    settings.insert(GATEWAY_LISTEN.to_owned(), gateway.listen().to_string());
    settings.extend(secrets.settings().map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(settings)
}

/// Adds the settings to a process that otherwise inherits our environment, but without the variables of the stack itself.
pub(super) fn apply(mut spec: ProcessSpec, settings: &Settings) -> ProcessSpec {
    for name in NOT_FOR_THE_EXECUTABLE {
        spec = spec.without_variable(name);
    }
    for (name, value) in settings {
        spec = spec.variable(name, value);
    }
    spec
}

fn file_url(path: &Path) -> Result<String> {
    let url =
        Url::from_file_path(path).map_err(|()| anyhow!("{} cannot be written as a URL", path.display()))?;
    Ok(url.into())
}
