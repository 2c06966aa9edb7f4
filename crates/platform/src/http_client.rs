//! The builder of every HTTP client: `reqwest` with the TLS provider of this project.

/// A client builder whose TLS uses `ring`.
pub fn client_builder() -> reqwest::ClientBuilder {
    install_tls_provider();
    reqwest::Client::builder()
}

/// Makes `ring` the TLS provider of this process, for clients that other libraries build; repeated calls do nothing.
///
/// `reqwest`'s own default is a C library that takes longer to compile than the rest of TLS.
pub fn install_tls_provider() {
    // It fails only when an earlier call has installed the provider.
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
}
