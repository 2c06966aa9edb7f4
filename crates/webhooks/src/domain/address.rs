//! Which addresses may be called (protection against SSRF). A user chooses the address, and this service calls it from inside
//! the installation's network: everything but the public internet is refused, at creation and again at every attempt.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// Ports below this one belong to other protocols, except 80 and 443.
const FIRST_UNPRIVILEGED_PORT: u16 = 1_024;

/// `webhooks.allowed_networks` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhooks.allowed_networks: `{0}` is no network such as 10.1.0.0/16 or fd00::/8")]
pub struct InvalidNetwork(String);

/// Why an address is refused; the text is shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedAddress {
    #[error("must be an absolute address such as https://hooks.example.com/assay")]
    InvalidUrl,
    #[error("must begin with https://")]
    Scheme,
    #[error("must not contain a user name or a password: the signature authenticates the sender")]
    Credentials,
    #[error("must not contain a fragment (#…): it is never sent")]
    Fragment,
    #[error("must use port 443, 80 or one from 1024 on")]
    Port,
    #[error("must be an address on the public internet: loopback, private and reserved ones are refused")]
    Network,
}

/// The rules of which addresses may be called.
#[derive(Debug, Clone, Default)]
pub struct AddressRules {
    allow_http: bool,
    allowed_networks: Vec<IpNet>,
}

impl AddressRules {
    /// Parses `webhooks.allowed_networks`: networks separated by commas, or nothing.
    ///
    /// # Errors
    /// When one of them is no network.
    pub fn new(allow_http: bool, allowed_networks: &str) -> Result<Self, InvalidNetwork> {
        let texts = allowed_networks.split(',').map(str::trim).filter(|text| !text.is_empty());
        let parse = |text: &str| text.parse().map_err(|_| InvalidNetwork(text.to_owned()));
        Ok(Self { allow_http, allowed_networks: texts.map(parse).collect::<Result<_, _>>()? })
    }

    /// Whether private networks may be called. Their host names may be relative to the search domains of this machine.
    pub fn has_private_networks(&self) -> bool {
        !self.allowed_networks.is_empty()
    }

    /// Checks a URL without resolving its host name.
    ///
    /// # Errors
    /// When the address is refused.
    pub fn check_url(&self, text: &str) -> Result<Url, RefusedAddress> {
        let url = Url::parse(text).map_err(|_| RefusedAddress::InvalidUrl)?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            _ => return Err(RefusedAddress::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RefusedAddress::Credentials);
        }
        if url.fragment().is_some() {
            return Err(RefusedAddress::Fragment);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if port < FIRST_UNPRIVILEGED_PORT && port != 443 && port != 80 {
            return Err(RefusedAddress::Port);
        }
        let is_allowed = match url.host() {
            Some(Host::Ipv4(address)) => self.allows(address.into()),
            Some(Host::Ipv6(address)) => self.allows(address.into()),
            Some(Host::Domain(name)) => self.allows_name(name),
            None => return Err(RefusedAddress::InvalidUrl),
        };
        if is_allowed { Ok(url) } else { Err(RefusedAddress::Network) }
    }

    /// Whether this address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        // An allowed network such as 10.0.0.0/8 includes its IPv4-mapped IPv6 addresses.
        let canonical = address.to_canonical();
        self.allowed_networks.iter().any(|network| network.contains(&address) || network.contains(&canonical))
            || is_public(canonical)
    }

    /// Refuses the names that always mean loopback (RFC 6761, section 6.3). Other names are resolved at each attempt.
    fn allows_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_loopback = name == "localhost" || name.ends_with(".localhost");
        !name.is_empty() && (!is_loopback || self.allows(Ipv4Addr::LOCALHOST.into()))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|network| network.contains(&address))
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// IANA's special-purpose addresses (RFC 6890), multicast (RFC 5771) and reserved addresses (RFC 1112).
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),      // this network
    v4(10, 0, 0, 0, 8),     // private
    v4(172, 16, 0, 0, 12),  // private
    v4(192, 168, 0, 0, 16), // private
    v4(100, 64, 0, 0, 10),  // carrier-grade NAT
    v4(127, 0, 0, 0, 8),    // loopback
    v4(169, 254, 0, 0, 16), // link-local, with the metadata services of clouds
    // Metadata and DNS of Azure's hosts: a public address that is local to every virtual machine.
    v4(168, 63, 129, 16, 32),
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, and broadcast
];

/// Global unicast (RFC 4291, section 2.4). Everything else is refused: loopback, unspecified,
/// IPv4-mapped and -compatible, NAT64 (`64:ff9b::/96`), unique local, link-local, site-local, multicast.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Special-purpose ranges within [`GLOBAL_V6`].
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x3fff, 0, 20),     // documentation
    v6(0x2002, 0, 16),     // 6to4, which leads to an IPv4 address of the sender's choice
];

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> AddressRules {
        AddressRules::new(false, "").unwrap()
    }

    #[test]
    fn non_public_addresses_are_refused() {
        for host in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            // Other notations of the same addresses.
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "127.1",
            "0",
            "0xa9fea9fe",
            "%31%32%37.0.0.1",
            "127。0。0。1",
            "[::]",
            "[::1]",
            "[::127.0.0.1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a00:1]",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[100::1]",
            "[2001::1]",
            "[2001:2::1]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
            "[3fff::1]",
            "[5f00::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[4000::1]",
            "localhost",
            "LocalHost",
            "localhost.",
            "a.localhost",
            "a.localhost.",
        ] {
            let refused = strict().check_url(&format!("https://{host}/x"));
            assert_eq!(refused.map(String::from), Err(RefusedAddress::Network), "{host}");
        }
    }

    #[test]
    fn public_addresses_and_names_are_allowed() {
        for host in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.0.0.1",
            "128.0.0.1",
            "169.253.1.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "192.169.1.1",
            "198.17.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
            "[2001:4860::8888]",
            "hooks.example.com",
            "hooks.example.com:8443",
            "localhost.example.com",
            "bücher.example",
        ] {
            let checked = strict().check_url(&format!("https://{host}/x"));
            assert!(checked.is_ok(), "{host}: {checked:?}");
        }
    }

    #[test]
    fn scheme_port_credentials_and_fragment_are_checked() {
        for (text, reason) in [
            ("", RefusedAddress::InvalidUrl),
            ("hooks.example.com/x", RefusedAddress::InvalidUrl),
            ("https://", RefusedAddress::InvalidUrl),
            ("https://hooks.example.com:99999/", RefusedAddress::InvalidUrl),
            ("http://hooks.example.com/", RefusedAddress::Scheme),
            ("ftp://hooks.example.com/", RefusedAddress::Scheme),
            ("file:///etc/passwd", RefusedAddress::Scheme),
            ("https://user@hooks.example.com/", RefusedAddress::Credentials),
            ("https://user:word@hooks.example.com/", RefusedAddress::Credentials),
            ("https://hooks.example.com/#part", RefusedAddress::Fragment),
            ("https://hooks.example.com:25/", RefusedAddress::Port),
            ("https://hooks.example.com:22/", RefusedAddress::Port),
            ("https://hooks.example.com:0/", RefusedAddress::Port),
        ] {
            assert_eq!(strict().check_url(text).map(String::from), Err(reason), "{text}");
        }
    }

    #[test]
    fn private_networks_and_http_can_be_allowed() {
        let rules = AddressRules::new(true, " 127.0.0.0/8, fd00::/8 ").unwrap();
        for text in [
            "http://127.0.0.1:9000/",
            "http://localhost:9000/",
            "https://[fd00::1]/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(rules.check_url(text).is_ok(), "{text}");
        }
        for text in ["http://10.0.0.1/", "https://[::1]/", "https://[fc00::1]/", "https://169.254.169.254/"] {
            assert_eq!(rules.check_url(text).map(String::from), Err(RefusedAddress::Network), "{text}");
        }
        assert!(
            AddressRules::new(false, "10.0.0.0/33").is_err() && AddressRules::new(false, "home").is_err()
        );
    }
}
