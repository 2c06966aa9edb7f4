//! Who looks at the pages: width, colours, zone, and whether scripts run.

use serde_json::{Value, json};

/// The settings of a viewer.
#[derive(Debug, Clone, Copy)]
pub struct Viewer {
    /// Of the window, in CSS pixels.
    pub width: u32,
    /// The colours that the system asks for.
    pub dark: bool,
    /// A name of the time zone database.
    pub zone: &'static str,
    pub scripts: bool,
}

impl Default for Viewer {
    fn default() -> Self {
        Self { width: 1440, dark: false, zone: "Etc/UTC", scripts: true }
    }
}

impl Viewer {
    /// The calls that make a tab that of this viewer.
    pub fn settings(&self) -> [(&'static str, Value); 4] {
        let colours = if self.dark { "dark" } else { "light" };
        let (width, height) = (self.width, 900);
        [
            (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
            ),
            (
                "Emulation.setEmulatedMedia",
                json!({"features": [{"name": "prefers-color-scheme", "value": colours}]}),
            ),
            ("Emulation.setTimezoneOverride", json!({"timezoneId": self.zone})),
            ("Emulation.setScriptExecutionDisabled", json!({"value": !self.scripts})),
        ]
    }
}
