//! Rules about requests of browsers: cookies, the origin of a form, and the targets of redirects.

/// The value of a cookie in the `Cookie` headers; `None` when there are several of this name.
pub(crate) fn cookie_value<'h>(headers: impl Iterator<Item = &'h str>, name: &str) -> Option<&'h str> {
    let mut values = headers.flat_map(|header| header.split(';')).filter_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    });
    values.next().filter(|_| values.next().is_none())
}

/// Whether a page of this host sent a form, according to the browser: by `Sec-Fetch-Site`, or without it by the host of
/// `Origin`. Clients that are not browsers send neither; they still need the form's token.
pub(crate) fn is_same_origin(sec_fetch_site: Option<&str>, origin: Option<&str>, own_host: &str) -> bool {
    if let Some(site) = sec_fetch_site {
        return site == "same-origin";
    }
    origin.is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some_and(|host| host.eq_ignore_ascii_case(own_host))
    })
}

/// Pages that a request may not name as the target of a redirect: they change something, begin a session, or take a form.
const NO_REDIRECT_TARGETS: [&str; 4] =
    ["/console/sign-in", "/console/sign-out", "/console/theme", "/console/typed"];

/// Whether a page may redirect to an address that a request names: to a page of the console on this host. Its path may
/// have only the characters of the console's own paths, so that decoding or resolving it does not change it.
pub(crate) fn may_redirect_to(address: &str) -> bool {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_/".contains(character);
    let is_under =
        |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_under("/console")
        && path.chars().all(is_plain)
        && !path.contains("//")
        && !NO_REDIRECT_TARGETS.into_iter().any(is_under)
        && !query.contains(['\\', '#'])
        && !query.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_unless_it_is_repeated() {
        let value = |header: &'static str| cookie_value([header].into_iter(), "a");
        assert_eq!(value("a=1"), Some("1"));
        assert_eq!(value("b=2; a=1; c"), Some("1"));
        assert_eq!(value("aa=1; b=2"), None);
        assert_eq!(value("a=1; a=2"), None);
    }

    #[test]
    fn form_of_another_site_is_refused() {
        let host = "assay.example:8443";
        assert!(is_same_origin(Some("same-origin"), None, host));
        assert!(is_same_origin(None, Some("https://ASSAY.example:8443"), host));
        assert!(is_same_origin(None, None, host));
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(!is_same_origin(Some(site), Some("https://assay.example:8443"), host), "{site}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "https://assay.example",
            "https://evil.example/assay.example:8443",
        ] {
            assert!(!is_same_origin(None, Some(origin), host), "{origin}");
        }
    }

    #[test]
    fn redirects_lead_to_pages_of_the_console_only() {
        for path in [
            "/console",
            "/console/keys",
            "/console?theme=dark",
            "/console/conversations?subject=a%20b",
            "/console/sign-ins",
        ] {
            assert!(may_redirect_to(path), "{path}");
        }
        for path in [
            "",
            "/",
            "//evil.example",
            "/console//evil",
            "/consoleX",
            "https://evil",
            "/console/\\evil",
            "/console\n",
            "/console/keys?a=\n",
            "/console/sign-in",
            "/console/sign-in?token=AAAA",
            "/console/sign-in/",
            "/console/sign%2din?token=AAAA",
            "/console/./sign-in?token=AAAA",
            "/console/keys/../sign-in?token=AAAA",
            "/console/sign-out",
            "/console/typed/keys",
            "/console/theme?to=dark&back=/console/theme",
        ] {
            assert!(!may_redirect_to(path), "{path:?}");
        }
    }
}
