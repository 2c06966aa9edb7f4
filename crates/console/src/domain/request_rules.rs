//! Rules about requests of browsers: cookies, where a form came from, and where a page may lead back to.

/// The value of a cookie in the `Cookie` headers; `None` when there are several of this name.
pub(crate) fn cookie_value<'h>(headers: impl Iterator<Item = &'h str>, name: &str) -> Option<&'h str> {
    let mut values = headers.flat_map(|header| header.split(';')).filter_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    });
    values.next().filter(|_| values.next().is_none())
}

/// Whether a form was sent by one of our own pages, as far as the browser says: `Sec-Fetch-Site`, or else `Origin`, whose
/// host must be ours. Other clients than browsers send neither; they need the form's token all the same.
pub(crate) fn is_own_form(sec_fetch_site: Option<&str>, origin: Option<&str>, own_host: &str) -> bool {
    if let Some(site) = sec_fetch_site {
        return site == "same-origin";
    }
    origin.is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some_and(|host| host.eq_ignore_ascii_case(own_host))
    })
}

/// Pages that a person is not led back to: they change something, or begin a session.
const NO_WAY_BACK: [&str; 3] = ["/console/sign-in", "/console/sign-out", "/console/theme"];

/// Whether a page may redirect there: a page of the console on this host. Our own paths have no other characters than these, so
/// none of them means something else once it is decoded or resolved.
pub(crate) fn is_local_path(address: &str) -> bool {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_/".contains(character);
    let is_under =
        |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_under("/console")
        && path.chars().all(is_plain)
        && !path.contains("//")
        && !NO_WAY_BACK.into_iter().any(is_under)
        && !query.contains(['\\', '#'])
        && !query.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_among_others_and_repeated_ones_are_refused() {
        let value = |header: &'static str| cookie_value([header].into_iter(), "a");
        assert_eq!(value("a=1"), Some("1"));
        assert_eq!(value("b=2; a=1; c"), Some("1"));
        assert_eq!(value("aa=1; b=2"), None);
        assert_eq!(value("a=1; a=2"), None);
    }

    #[test]
    fn form_of_another_site_is_refused() {
        let host = "assay.example:8443";
        assert!(is_own_form(Some("same-origin"), None, host));
        assert!(is_own_form(None, Some("https://ASSAY.example:8443"), host));
        assert!(is_own_form(None, None, host));
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(!is_own_form(Some(site), Some("https://assay.example:8443"), host), "{site}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "https://assay.example",
            "https://evil.example/assay.example:8443",
        ] {
            assert!(!is_own_form(None, Some(origin), host), "{origin}");
        }
    }

    #[test]
    fn page_leads_back_to_paths_of_the_console_only() {
        for path in [
            "/console",
            "/console/keys",
            "/console?theme=dark",
            "/console/conversations?subject=a%20b",
            "/console/sign-ins",
        ] {
            assert!(is_local_path(path), "{path}");
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
            "/console/theme?to=dark&back=/console/theme",
        ] {
            assert!(!is_local_path(path), "{path:?}");
        }
    }
}
