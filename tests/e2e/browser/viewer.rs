//! Emulated settings of a viewer: window width, colour scheme, time zone, whether scripts run, and print.

use serde_json::{Value, json};

/// The settings of a viewer.
#[derive(Debug, Clone, Copy)]
pub struct Viewer {
    /// Width of the window, in CSS pixels.
    pub width: u32,
    /// Whether the system prefers a dark colour scheme.
    pub dark: bool,
    /// A name of the time zone database.
    pub zone: &'static str,
    pub scripts: bool,
    /// Whether pages are rendered as they are printed.
    pub prints: bool,
}

impl Default for Viewer {
    fn default() -> Self {
        Self { width: 1440, dark: false, zone: "Etc/UTC", scripts: true, prints: false }
    }
}

impl Viewer {
    /// The protocol calls that apply these settings to a tab.
    pub fn settings(&self) -> [(&'static str, Value); 4] {
        let colours = if self.dark { "dark" } else { "light" };
        let media = if self.prints { "print" } else { "" };
        let (width, height) = (self.width, 900);
        [
            (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
            ),
            (
                "Emulation.setEmulatedMedia",
                json!({"media": media, "features": [{"name": "prefers-color-scheme", "value": colours}]}),
            ),
            ("Emulation.setTimezoneOverride", json!({"timezoneId": self.zone})),
            ("Emulation.setScriptExecutionDisabled", json!({"value": !self.scripts})),
        ]
    }
}
