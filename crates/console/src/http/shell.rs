//! What every page has: title, navigation, theme, and the token of its forms.

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;

use super::Console;
use super::assets::AssetAddresses;
use super::kept_form::kept_fields;
use super::viewer::SessionRequest;
use crate::domain::cookie_value;

/// The cookie of the theme; without it the theme is that of the system.
pub(crate) const THEME_COOKIE: &str = "assay-theme";

/// The pages of the navigation.
pub(crate) const SECTIONS: [(&str, &str); 7] = [
    ("Overview", "/console"),
    ("Conversations", "/console/conversations"),
    ("Exports", "/console/exports"),
    ("Webhooks", "/console/webhooks"),
    ("Keys", "/console/keys"),
    ("Agents", "/console/agents"),
    ("Imports", "/console/imports"),
];

/// The section of a page that is not in the navigation.
pub(crate) const NO_SECTION: &str = "";

/// The frame of a page.
pub(crate) struct Shell {
    pub(crate) title: String,
    /// The address of the current section, or [`NO_SECTION`].
    pub(crate) section: &'static str,
    /// `None`: without a session.
    pub(crate) organization: Option<String>,
    /// Token of the forms of the session.
    pub(crate) csrf: String,
    /// `light`, `dark` or `system`.
    pub(crate) theme: &'static str,
    pub(crate) path_and_query: String,
    pub(crate) files: AssetAddresses,
    pub(crate) has_charts: bool,
    /// Whether a form of the page shows what was typed before its request failed.
    pub(crate) is_refilled: bool,
}

impl Shell {
    pub(crate) fn new(request: &SessionRequest, section: &'static str, title: impl Into<String>) -> Self {
        let SessionRequest { http, console, viewer } = request;
        Self {
            section,
            organization: Some(viewer.session.organization.clone()),
            csrf: viewer.form_token(),
            is_refilled: kept_fields(http).is_some(),
            ..Self::signed_out(http, console, title)
        }
    }

    pub(crate) fn signed_out(request: &HttpRequest, console: &Console, title: impl Into<String>) -> Self {
        let path_and_query = request.uri().path_and_query().map(|path| path.as_str().to_owned());
        Self {
            title: title.into(),
            section: NO_SECTION,
            organization: None,
            csrf: String::new(),
            theme: theme(request),
            path_and_query: path_and_query.unwrap_or_default(),
            files: console.assets.addresses.clone(),
            has_charts: false,
            is_refilled: false,
        }
    }

    /// The pages of the navigation, and whether each is the current section.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> + '_ {
        SECTIONS.into_iter().map(|(name, address)| (name, address, address == self.section))
    }

    /// The themes, and whether each is the current one.
    pub(crate) fn themes(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        THEMES.into_iter().map(|theme| (theme, theme == self.theme))
    }

    /// The part of the query that leads back to this page, for the links that change the theme.
    pub(crate) fn back_query(&self) -> String {
        assay_contracts::evaluations::encode_query([("back", &self.path_and_query)])
    }
}

pub(crate) const THEMES: [&str; 3] = ["system", "light", "dark"];

fn theme(request: &HttpRequest) -> &'static str {
    let headers = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let named = cookie_value(headers, THEME_COOKIE);
    THEMES.into_iter().find(|theme| named == Some(*theme)).unwrap_or("system")
}
