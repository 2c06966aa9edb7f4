//! Internal routes, called directly: each refuses every token that was not issued for it.
//! Known attacks on JSON Web Tokens: RFC 8725, sections 2 and 3.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use assay_platform::runtime::now;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

use crate::harness::{
    Api, Cases, Operation, SCOPES, Stack, documented_operations, edited, routed_operations, serving_crates,
    set, unset,
};

const ID: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";

/// Crate, audience, and the setting that says where the service is.
const SERVICES: [(&str, &str, &str); 5] = [
    ("agent-registry", "agent-registry", "ASSAY_SERVICES__REGISTRY_URL"),
    ("ingest", "ingest", "ASSAY_SERVICES__INGEST_URL"),
    ("scoring-worker", "scoring", "ASSAY_SERVICES__SCORING_URL"),
    ("export", "export", "ASSAY_SERVICES__EXPORT_URL"),
    ("webhooks", "webhooks", "ASSAY_SERVICES__WEBHOOKS_URL"),
];

/// Routes without a token: signed URLs.
const WITHOUT_TOKEN: [&str; 2] = ["GET /v1/downloads/{id}", "HEAD /v1/downloads/{id}"];

/// Every internal route, with every forged token, and with good ones.
pub async fn run(stack: &Stack) -> Result<()> {
    // The console is not called here: its crate tests that its routes need the gateway's token besides a session.
    let others = ["gateway", "console"];
    let known: BTreeSet<String> =
        SERVICES.iter().map(|(name, ..)| *name).chain(others).map(str::to_owned).collect();
    let serving = serving_crates()?;
    ensure!(serving == known, "a service that this scenario does not know: {serving:?}");
    all_documented()?;
    let secret = stack.setting("ASSAY_SECURITY__SERVICE_TOKEN_SECRET").as_bytes().to_vec();
    let mut cases = Cases::default();
    for (name, audience, variable) in SERVICES {
        let service = Api::new(stack.setting(variable), None)?;
        let forge = Forge { secret: secret.clone(), audience };
        for operation in routed_operations(name)? {
            if WITHOUT_TOKEN.contains(&operation.to_string().as_str()) {
                continue;
            }
            ensure!(
                operation.needs_token,
                "{name}: {operation} is served without a token: add it to WITHOUT_TOKEN or move it under /internal/"
            );
            cases.check(
                format!("{name}: {operation}: good tokens"),
                expect_admitted(&service, &operation, &forge).await,
            );
            for (forgery, header) in forge.forgeries(stack.key()) {
                let outcome = expect_refused(&service, &operation, header.as_deref()).await;
                cases.check(format!("{name}: {operation}: {forgery}"), outcome);
            }
        }
    }
    cases.finish()
}

/// `proto-docs/openapi/internal.json` lists every route of the services, and nothing else.
fn all_documented() -> Result<()> {
    let document: Value = serde_json::from_str(include_str!("../../../proto-docs/openapi/internal.json"))?;
    let shapes = |operations: &[Operation]| operations.iter().map(Operation::shape).collect::<BTreeSet<_>>();
    let mut routed = BTreeSet::new();
    for (name, ..) in SERVICES {
        routed.extend(shapes(&routed_operations(name)?));
    }
    let documented = shapes(&documented_operations(&document)?);
    ensure!(documented == routed, "documented {documented:?}, routed {routed:?}");
    Ok(())
}

/// A route accepts tokens of a tenant, of a service, or both; any other gets 401.
async fn expect_admitted(service: &Api, operation: &Operation, forge: &Forge) -> Result<()> {
    let mut admitted = 0;
    for claims in [forge.of_tenant(), forge.of_service()] {
        let token = format!("Bearer {}", forge.token(&claims));
        let status = ask(service, operation, Some(&token)).await?;
        admitted += usize::from(status != 401);
        ensure!(status != 403, "a valid token gets 403");
    }
    ensure!(admitted > 0, "no valid token is accepted, so the refusals of forged ones prove nothing");
    Ok(())
}

async fn expect_refused(service: &Api, operation: &Operation, header: Option<&str>) -> Result<()> {
    let status = ask(service, operation, header).await?;
    ensure!(status == 401 || status == 403, "{status}");
    Ok(())
}

/// The status of a request with an invalid body: the token is checked first.
async fn ask(service: &Api, operation: &Operation, header: Option<&str>) -> Result<u16> {
    let mut request = service.request(operation.method.clone(), &operation.path_with(&[ID, ID]));
    if operation.method != reqwest::Method::GET {
        request = request.header("content-type", "application/json").body("{");
    }
    if let Some(header) = header {
        request = request.header("authorization", header);
    }
    let reply = service.reply(request).await?;
    if reply.status == 401 {
        reply.problem(401, "unauthorized")?;
    }
    Ok(reply.status)
}

/// Makes tokens as a service does, with one change.
struct Forge {
    secret: Vec<u8>,
    audience: &'static str,
}

impl Forge {
    fn of_service(&self) -> Value {
        let now = now().as_millis() / 1_000;
        json!({"iss": "assay", "aud": self.audience, "iat": now, "exp": now + 60})
    }

    fn of_tenant(&self) -> Value {
        edited(self.of_service(), &[set("/org", ID), set("/scope", SCOPES)])
    }

    /// A valid token.
    fn token(&self, claims: &Value) -> String {
        signed(&json!({"alg": "HS256", "typ": "JWT"}), claims, |text| hs256(&self.secret, text))
    }

    /// `Authorization` headers that must not work, by name.
    fn forgeries(&self, api_key: &str) -> Vec<(String, Option<String>)> {
        let mut forged = vec![
            ("no token".to_owned(), None),
            ("an empty header".to_owned(), Some(String::new())),
            ("an empty token".to_owned(), Some("Bearer ".to_owned())),
            ("another scheme".to_owned(), Some(format!("Basic {}", self.token(&self.of_tenant())))),
            ("an API key".to_owned(), Some(format!("Bearer {api_key}"))),
        ];
        for (claims, whose) in [(self.of_tenant(), "a tenant's"), (self.of_service(), "a service's")] {
            let tokens =
                [self.other_algorithms(&claims), self.other_signatures(&claims), self.other_claims(&claims)];
            let named = tokens.concat().into_iter();
            forged.extend(
                named.map(|(name, token)| (format!("{whose}: {name}"), Some(format!("Bearer {token}")))),
            );
        }
        forged
    }

    fn other_algorithms(&self, claims: &Value) -> Vec<(String, String)> {
        let mut forged = Vec::new();
        let mut forge = |name: &str, signature: &str| {
            let token = signed(&json!({"alg": name, "typ": "JWT"}), claims, |text| match signature {
                "HS256" => hs256(&self.secret, text),
                "HS512" => hs512(&self.secret, text),
                _ => Vec::new(),
            });
            forged.push((format!("alg {name:?}, signature {signature}"), token));
        };
        for name in ["none", "None", "NONE", "nOnE", ""] {
            forge(name, "none");
            forge(name, "HS256");
        }
        for name in ["HS384", "HS512", "RS256", "ES256", "PS256", "EdDSA", "hs256"] {
            forge(name, "HS256");
            forge(name, "HS512");
        }
        forge("HS256", "HS512");
        forged
    }

    fn other_signatures(&self, claims: &Value) -> Vec<(String, String)> {
        let good = self.token(claims);
        let parts: Vec<&str> = good.split('.').collect();
        let other_key = vec![b'x'; 64];
        let jwk = json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(&other_key)});
        let own_key = json!({"alg": "HS256", "typ": "JWT", "kid": "../../dev/null", "jwk": jwk});
        let other_claims = edited(
            claims.clone(),
            &[set("/org", "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a12"), set("/scope", "admin")],
        );
        let other_payload = URL_SAFE_NO_PAD.encode(other_claims.to_string());
        [
            ("another key", signed(&json!({"alg": "HS256"}), claims, |text| hs256(&other_key, text))),
            ("an empty key", signed(&json!({"alg": "HS256"}), claims, |text| hs256(b"", text))),
            ("a key in its header", signed(&own_key, claims, |text| hs256(&other_key, text))),
            ("another payload", format!("{}.{other_payload}.{}", parts[0], parts[2])),
            ("no signature", format!("{}.{}.", parts[0], parts[1])),
            ("two parts", format!("{}.{}", parts[0], parts[1])),
            ("four parts", format!("{good}.{}", parts[2])),
            ("a part of the signature", good[..good.len() - parts[2].len() / 2].to_owned()),
            ("the signature twice", format!("{good}{}", parts[2])),
            ("no header", format!(".{}.{}", parts[1], parts[2])),
            ("no JSON", format!("{0}.{0}.{0}", URL_SAFE_NO_PAD.encode("{"))),
            ("16 kB", "x".repeat(16_000)),
            ("16 kB of payload", self.token(&edited(claims.clone(), &[set("/aud", "x".repeat(12_000))]))),
        ]
        .map(|(name, token)| (name.to_owned(), token))
        .into()
    }

    fn other_claims(&self, claims: &Value) -> Vec<(String, String)> {
        let now = now().as_millis() / 1_000;
        let mut edits = vec![
            vec![set("/iss", "another")],
            vec![set("/iss", json!(["assay", "another"]))],
            vec![set("/iss", Value::Null)],
            vec![set("/aud", "gateway")],
            vec![set("/aud", "")],
            vec![set("/aud", json!([self.audience, "another"]))],
            vec![set("/exp", now - 60), set("/iat", now - 120)],
            vec![set("/exp", 0)],
            vec![set("/exp", -1)],
            vec![set("/exp", (now + 60).to_string())],
            vec![set("/exp", now + 3_600)],
            vec![set("/exp", i64::MAX)],
            vec![set("/exp", i64::MAX), set("/iat", i64::MIN)],
            vec![set("/exp", 1e300)],
            vec![set("/iat", now + 3_600), set("/exp", now + 3_660)],
            vec![set("/nbf", now + 3_600)],
        ];
        edits.extend(["/iss", "/aud", "/exp", "/iat"].map(|claim| vec![unset(claim)]));
        // The token of another service.
        let others =
            SERVICES.iter().map(|(_, audience, _)| *audience).filter(|other| *other != self.audience);
        edits.extend(others.map(|other| vec![set("/aud", other)]));
        // An incomplete tenant.
        edits.extend([
            vec![set("/org", ID), unset("/scope")],
            vec![unset("/org"), set("/scope", "assess")],
            vec![set("/org", "everybody"), set("/scope", "assess")],
            vec![set("/org", ID), set("/scope", "everything")],
        ]);
        let token = |edits: Vec<_>| (format!("{edits:?}"), self.token(&edited(claims.clone(), &edits)));
        edits.into_iter().map(token).collect()
    }
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&str) -> Vec<u8>) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(header), encode(claims));
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(sign(&text)))
}

fn hs256(secret: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap_or_else(|_| unreachable!("any length"));
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hs512(secret: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha512>::new_from_slice(secret).unwrap_or_else(|_| unreachable!("any length"));
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
