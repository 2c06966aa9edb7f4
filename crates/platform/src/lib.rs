//! What makes a role a service: settings, telemetry, runtime, web, auth, databases and objects.
