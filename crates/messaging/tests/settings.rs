//! The section `[bus]` of the configuration.

use anyhow::Result;
use assay_messaging::{Bus, BusSettings, RetryDelay};

#[test]
fn known_keys_are_read_and_unknown_ones_are_refused() -> Result<()> {
    let text = r#"{"url": "local:", "namespace": "blue", "retry_delays_ms": [5, 50], "max_attempts": 3,
        "events_per_message": 2, "handling_limit_seconds": 7}"#;
    let settings: BusSettings = serde_json::from_str(text)?;
    assert_eq!((settings.namespace.as_str(), settings.max_attempts), ("blue", 3));
    assert_eq!(settings.retry_delays, [5, 50].map(RetryDelay::from_millis));
    assert_eq!((settings.events_per_message, settings.handling_limit_seconds), (2, 7));
    let error = serde_json::from_str::<BusSettings>(&text.replace("{", "{\"name_space\": 1, ")).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `name_space`"), "{error}");
    Ok(())
}

#[test]
fn invalid_settings_name_the_key_without_the_password() {
    let with = |url: &str| BusSettings::new(url);
    let cases = [
        (with("kafka://user:secret@host"), "bus.url must begin with"),
        (with("amqp://user:secret@host:port/%2f"), "bus.url cannot be parsed"),
        (with("amqp://user:secret@host/%2f?heartbeat=secret"), "bus.url cannot be parsed"),
        (with("secret"), "bus.url must begin with"),
        (with("local:secret"), "bus.url must begin with"),
        (BusSettings { namespace: String::new(), ..with("amqp://host") }, "bus.namespace"),
        (BusSettings { namespace: "a b".to_owned(), ..with("amqp://host") }, "bus.namespace"),
        (BusSettings { namespace: "a".repeat(65), ..with("amqp://host") }, "bus.namespace"),
        (BusSettings { max_attempts: 0, ..with("local:") }, "bus.max_attempts"),
        (BusSettings { events_per_message: 0, ..with("amqp://host") }, "bus.events_per_message"),
        (BusSettings { events_per_message: 1_001, ..with("local:") }, "bus.events_per_message"),
        (BusSettings { retry_delays: Vec::new(), ..with("amqp://host") }, "bus.retry_delays_ms"),
    ];
    for (settings, expected) in cases {
        let error = Bus::open(&settings).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with(expected), "{settings:?}: {error:?}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn bus_opens_without_a_broker() {
    assert!(Bus::open(&BusSettings::new("amqp://guest:guest@127.0.0.1:1/%2f")).is_ok());
    assert!(Bus::open(&BusSettings::new("local:")).is_ok());
}
