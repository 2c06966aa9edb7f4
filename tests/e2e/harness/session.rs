//! A session of the console, without a browser.

use anyhow::{Context, Result, ensure};
use reqwest::Method;

use super::api::Api;
use super::reply::Reply;
use super::stack::{Kind, Stack};

/// A signed-in client of the console's pages.
pub struct Session {
    client: Api,
    cookie: String,
}

impl Session {
    /// Signs in by a one-time address of `assay console link`, as a browser does when a person opens it.
    pub async fn open(stack: &Stack, organization: &str) -> Result<Self> {
        // The standalone listens on a free port, and knows it.
        let url: &[&str] = if stack.kind == Kind::Standalone { &[] } else { &["--url", stack.base_url()] };
        let arguments = [&["link", "--organization", organization], url].concat();
        let output = stack.operate("console", &arguments).await?;
        ensure!(output.status.success(), "assay console link: {output:?}");
        let link = String::from_utf8(output.stdout)?;
        let client = Api::new(stack.base_url(), None)?;
        let sign_in = client.request(Method::GET, link.trim()).header("Sec-Fetch-Site", "none");
        let signed_in = client.reply(sign_in).await?;
        let cookies =
            signed_in.headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
        let mut pairs = cookies.filter_map(|cookie| cookie.split(';').next());
        let cookie = pairs.find(|pair| pair.starts_with("assay-session="));
        let cookie = cookie.with_context(|| format!("not signed in: {}", signed_in.status))?.to_owned();
        Ok(Self { client, cookie })
    }

    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.client.reply(self.client.request(Method::GET, path).header("Cookie", &self.cookie)).await
    }

    /// Posts a form without fields to `to`, with the CSRF token of the page at `from`.
    pub async fn send(&self, from: &str, to: &str) -> Result<Reply> {
        let page = self.get(from).await?;
        let text = String::from_utf8(page.body)?;
        let (_, rest) =
            text.split_once("name=\"csrf\" value=\"").with_context(|| format!("{from} has no form"))?;
        let token = rest.split('"').next().unwrap_or_default();
        let request = self.client.request(Method::POST, to).header("Cookie", &self.cookie);
        let request = request
            .header("Sec-Fetch-Site", "same-origin")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(format!("csrf={token}"));
        self.client.reply(request).await
    }
}
