//! What a browser tells of the pages without being asked.

use serde_json::Value;

/// Since the last time that somebody looked.
#[derive(Default)]
pub struct Heard {
    /// Violations of the policy, faults of scripts, failed loads, dialogs.
    pub complaints: Vec<String>,
    /// The paths of finished downloads.
    pub downloads: Vec<String>,
    /// Bytes on the wire.
    pub loaded_bytes: u64,
}

impl Heard {
    /// Takes in an event.
    pub fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["method"].as_str().unwrap_or_default() {
            "Log.entryAdded" => {
                let entry = &parameters["entry"];
                if matches!(entry["level"].as_str(), Some("error" | "warning")) {
                    self.complaints.push(format!("{} {}", text(&entry["text"]), text(&entry["url"])));
                }
            }
            "Audits.issueAdded" => self.complaints.extend(violation(&parameters["issue"])),
            "Runtime.exceptionThrown" => {
                self.complaints.push(format!("exception: {}", parameters["exceptionDetails"]));
            }
            "Runtime.consoleAPICalled"
                if matches!(parameters["type"].as_str(), Some("error" | "warning")) =>
            {
                self.complaints.push(format!("console: {}", parameters["args"]));
            }
            "Page.javascriptDialogOpening" => self.complaints.push(format!("dialog: {parameters}")),
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

/// A violation of the policy of the page, as text.
fn violation(issue: &Value) -> Option<String> {
    let code = issue["code"].as_str().unwrap_or_default();
    (code == "ContentSecurityPolicyIssue").then(|| format!("violation: {}", issue["details"]))
}
