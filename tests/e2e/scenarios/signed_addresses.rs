//! A signed URL opens one file for fifteen minutes; signing keys can be rotated.

use anyhow::{Context, Result, ensure};
use assay_contracts::ids::ExportId;
use assay_export::domain::download_address;
use assay_platform::auth::KeyRing;
use assay_platform::runtime::now;
use serde_json::json;

use crate::harness::{Api, Cases, PrivateStack, Stack, conversation, text};

const SIGNING_KEYS: &str = "ASSAY_SECURITY__SIGNING_KEYS";
/// Signing keys as `ID:SECRET`.
const OLD: &str = "old:an-older-secret-of-this-installation";
const NEW: &str = "new:the-new-secret-of-this-installation";

/// Two exports and their URLs, signed with [`OLD`].
struct Files {
    without_key: Api,
    id: String,
    address: String,
    other_address: String,
    cursor: String,
}

/// Altered and expired URLs; then key rotation.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start_with(&[(SIGNING_KEYS, OLD)]).await?;
    let files = Files::new(stack).await?;
    let mut cases = Cases::default();
    for (name, address) in files.forgeries()? {
        let refused = files.without_key.get(&address).await?;
        cases.check(format!("{name}: {address}"), refused.problem(403, "invalid-signature").map(drop));
    }
    cases.check("signatures as cursors", files.as_cursors(stack).await);
    cases.check("a new URL", files.opens(&files.address).await);
    cases.check("one minute before the end", files.opens(&files.signed(OLD, -14 * 60 * 1_000)?).await);
    cases.finish()?;
    key_rotation(stack, &files).await
}

impl Files {
    async fn new(stack: &Stack) -> Result<Self> {
        let api = stack.api()?;
        api.evaluation(&api.import(&conversation("signed")).await?).await?;
        let export = api.export(&json!({"kind": "axis"})).await?;
        let other = api.export(&json!({"kind": "resolution_audit"})).await?;
        let page = api.get("/v1/evaluations/exports?limit=1").await?.expect(200)?;
        Ok(Self {
            without_key: stack.api_with(None)?,
            id: text(&export, "id")?,
            address: text(&export, "download_url")?,
            other_address: text(&other, "download_url")?,
            cursor: text(&page["page_info"], "next_cursor")?,
        })
    }

    async fn opens(&self, address: &str) -> Result<()> {
        let reply = self.without_key.get(address).await?;
        reply.expect_status(200)?;
        ensure!(reply.header("content-type") == "text/csv; charset=utf-8", "{:?}", reply.headers);
        Ok(())
    }

    /// The URL without its host: stable across a restart.
    fn relative(&self) -> Result<String> {
        let at = self.address.find("/v1/").context("no path")?;
        Ok(self.address[at..].to_owned())
    }

    /// The path and query of a URL that was signed with these keys, this many milliseconds from now.
    fn signed(&self, keys: &str, millis_from_now: i64) -> Result<String> {
        let keys = KeyRing::parse(&keys.to_owned().into())?;
        let id: ExportId = self.id.parse()?;
        Ok(download_address::sign(&keys, "", id, now().plus_millis(millis_from_now)))
    }

    fn forgeries(&self) -> Result<Vec<(String, String)>> {
        let (path, query) = self.address.split_once('?').context("no query")?;
        let (other_path, other_query) = self.other_address.split_once('?').context("no query")?;
        let pairs: Vec<(&str, &str)> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let value = |query: &str, name: &str| {
            let found =
                query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned));
            found.with_context(|| format!("no {name}"))
        };
        let (expires, signature) = (value(query, "expires")?, value(query, "signature")?);
        let with = |name: &str, value: &str| {
            let changed = pairs.iter().map(|(n, v)| format!("{n}={}", if *n == name { value } else { v }));
            format!("{path}?{}", changed.collect::<Vec<_>>().join("&"))
        };
        let mut forged = Vec::new();
        for (name, good) in &pairs {
            let rest: Vec<String> =
                pairs.iter().filter(|(n, _)| n != name).map(|(n, v)| format!("{n}={v}")).collect();
            forged.push((format!("without {name}"), format!("{path}?{}", rest.join("&"))));
            forged.push((format!("{name} twice"), format!("{path}?{query}&{name}={good}")));
            forged.push((format!("{name} twice, the first is another"), format!("{path}?{name}=x&{query}")));
            forged
                .push((format!("{name} in capitals"), self.address.replacen(name, &name.to_uppercase(), 1)));
            for other in ["", "0", "x", "%00", "%FF", "%", "null", "-1", "👍"] {
                forged.push((format!("another {name}"), with(name, other)));
            }
            forged.push((format!("{name} and a space"), with(name, &format!("{good}%20"))));
            forged.push((format!("{name} and a zero"), with(name, &format!("{good}0"))));
            let last = if good.ends_with('1') { "2" } else { "1" };
            let changed = format!("{}{last}", &good[..good.len() - 1]);
            forged.push((format!("{name} with another last character"), with(name, &changed)));
        }
        let later: i64 = expires.parse::<i64>()? + 1;
        let upper = self.id.to_uppercase();
        // A cursor is `CONTENT.KEY.SIGNATURE`.
        let cursor_signature = self.cursor.rsplit('.').next().unwrap_or_default();
        forged.extend([
            ("a later end".to_owned(), with("expires", &later.to_string())),
            ("the same number, written otherwise".to_owned(), with("expires", &format!("0{expires}"))),
            ("the same number, written otherwise".to_owned(), with("expires", &format!("%2B{expires}"))),
            ("a part of the signature".to_owned(), with("signature", &signature[..20])),
            ("a padded signature".to_owned(), with("signature", &format!("{signature}="))),
            (
                "the signature of another file".to_owned(),
                with("signature", &value(other_query, "signature")?),
            ),
            ("the query of another file".to_owned(), format!("{path}?{other_query}")),
            ("the path of another file".to_owned(), format!("{other_path}?{query}")),
            ("a longer path".to_owned(), format!("{path}x?{query}")),
            ("no query".to_owned(), path.to_owned()),
            ("the query twice".to_owned(), format!("{}&{query}", self.address)),
            ("an id in capitals".to_owned(), self.address.replacen(&self.id, &upper, 1)),
            ("a cursor as signature".to_owned(), with("signature", &self.cursor)),
            ("the signature of a cursor".to_owned(), with("signature", cursor_signature)),
            ("an unknown key".to_owned(), with("key", "k9")),
            ("a foreign key".to_owned(), self.signed(NEW, 0)?),
            ("a key of the same name".to_owned(), self.signed("old:a-foreign-secret-of-the-same-name", 0)?),
            ("an end that has passed".to_owned(), self.signed(OLD, -15 * 60 * 1_000)?),
            ("an end long ago".to_owned(), self.signed(OLD, -1_000_000_000_000)?),
        ]);
        Ok(forged)
    }

    /// A signature for one purpose is invalid for another.
    async fn as_cursors(&self, stack: &Stack) -> Result<()> {
        let signature = self.address.split_once("signature=").context("no signature")?.1;
        let key_id = self.cursor.split('.').nth(1).context("no key id in the cursor")?;
        let content = self.cursor.split('.').next().context("no content")?;
        for cursor in [signature.to_owned(), format!("{content}.{key_id}.{signature}")] {
            let path = format!("/v1/evaluations/exports?cursor={cursor}");
            stack.api()?.get(&path).await?.problem(400, "invalid-cursor").context(cursor)?;
        }
        Ok(())
    }
}

/// First the new key signs and the old one still verifies; then the old one is removed.
async fn key_rotation(stack: &mut PrivateStack, files: &Files) -> Result<()> {
    let rotated = format!("{NEW},{OLD}");
    stack.restart_with("export", &[(SIGNING_KEYS, &rotated)]).await?;
    files.opens(&files.relative()?).await.context("an address of the old key while both are known")?;
    let export = stack.api()?.await_complete(&files.id).await?;
    let fresh = text(&export, "download_url")?;
    ensure!(fresh.contains("key=new&"), "signed with the old key: {fresh}");
    let cursor = format!("/v1/evaluations/exports?cursor={}", files.cursor);
    stack.api()?.get(&cursor).await?.expect(200).context("a cursor of the old key while both are known")?;
    files.opens(&fresh).await?;

    stack.restart_with("export", &[(SIGNING_KEYS, NEW)]).await?;
    files
        .without_key
        .get(&files.relative()?)
        .await?
        .problem(403, "invalid-signature")
        .context("a removed key")?;
    stack.api()?.get(&cursor).await?.problem(400, "invalid-cursor").context("a removed key")?;
    files.opens(&fresh).await
}
