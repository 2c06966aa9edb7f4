//! Events of the browser: page errors, downloads and loaded bytes.

use serde_json::Value;

/// Errors and downloads until they are taken, and bytes since they were last reset.
#[derive(Default)]
pub struct BrowserLog {
    /// Violations of the Content Security Policy, script errors, failed loads, dialogs.
    pub page_errors: Vec<String>,
    /// The paths of finished downloads.
    pub downloads: Vec<String>,
    /// Bytes on the wire.
    pub loaded_bytes: u64,
}

impl BrowserLog {
    /// Records an event of the DevTools protocol.
    pub fn record(&mut self, event: &Value) {
        let parameters = &event["params"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["method"].as_str().unwrap_or_default() {
            "Log.entryAdded" => {
                let entry = &parameters["entry"];
                if matches!(entry["level"].as_str(), Some("error" | "warning")) {
                    self.page_errors.push(format!("{} {}", text(&entry["text"]), text(&entry["url"])));
                }
            }
            "Audits.issueAdded" => self.page_errors.extend(violation(&parameters["issue"])),
            "Runtime.exceptionThrown" => {
                self.page_errors.push(format!("exception: {}", parameters["exceptionDetails"]));
            }
            "Runtime.consoleAPICalled"
                if matches!(parameters["type"].as_str(), Some("error" | "warning")) =>
            {
                self.page_errors.push(format!("console: {}", parameters["args"]));
            }
            "Page.javascriptDialogOpening" => self.page_errors.push(format!("dialog: {parameters}")),
            "Network.loadingFinished" => {
                self.loaded_bytes += parameters["encodedDataLength"].as_u64().unwrap_or_default();
            }
            "Browser.downloadProgress" if parameters["state"] == "completed" => {
                self.downloads.push(text(&parameters["filePath"]));
            }
            _ => {}
        }
    }
}

/// A violation of the Content Security Policy, as text.
fn violation(issue: &Value) -> Option<String> {
    let code = issue["code"].as_str().unwrap_or_default();
    (code == "ContentSecurityPolicyIssue").then(|| format!("violation: {}", issue["details"]))
}
