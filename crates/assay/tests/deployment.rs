//! `deploy/` and `docker-compose.yml` agree with the code about settings, roles, ports and databases. Their validity for
//! Docker and Kubernetes is checked by scripts/compose-test.sh and scripts/kubernetes-test.sh.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod repository;
mod settings;

use std::collections::BTreeMap;

use serde_json::Value;

use repository::{files_below, read, root};
use settings::{defaults, is_setting, variables};

/// Variables that are not settings: read by Docker Compose, or by the command line as a client.
const OTHER_VARIABLES: [&str; 3] = ["ASSAY_IMAGE", "ASSAY_PUBLISH", "ASSAY_API_KEY"];

/// All deployment files, by path from the root.
fn deployment_files() -> BTreeMap<String, String> {
    // `secrets` has generated secrets of this machine's containers.
    let deployed = files_below("deploy", &["secrets"]).into_iter().filter(|name| !name.ends_with(".md"));
    let names = deployed.chain(["docker-compose.yml", ".env.example"].map(str::to_owned));
    let found: BTreeMap<_, _> = names.map(|name| (name.clone(), read(&name))).collect();
    assert!(found.len() > 20, "the files were not found");
    found
}

#[test]
fn deployed_variables_are_settings() {
    let defaults = defaults();
    let mut seen = 0;
    for (path, text) in deployment_files() {
        for variable in variables(&text).iter().filter(|name| !OTHER_VARIABLES.contains(&name.as_str())) {
            seen += 1;
            assert!(is_setting(variable, &defaults), "{path}: {variable} is not in config/default.toml");
        }
    }
    assert!(seen > 60, "only {seen} variables were found");
    assert!(!is_setting("ASSAY_INGEST__DATABSE_URL_FILE", &defaults));
    assert!(!is_setting("ASSAY_OBJECTS__OPTIONS__AWS_REGOIN", &defaults));
}

/// The roles of the executable, by the names of their commands.
fn roles() -> Vec<String> {
    let source = read("crates/assay/src/roles.rs");
    let body = source.split_once("pub enum Role {").unwrap().1.split_once('}').unwrap().0;
    let names = body.split(',').map(str::trim).filter(|name| !name.is_empty());
    let kebab = |name: &str| {
        name.chars().fold(String::new(), |mut text, c| {
            if c.is_uppercase() && !text.is_empty() {
                text.push('-');
            }
            text.push(c.to_ascii_lowercase());
            text
        })
    };
    let roles: Vec<String> = names.map(kebab).collect();
    assert!(roles.len() >= 6, "the roles were not found: {roles:?}");
    roles
}

/// The section of the settings that belongs to a role.
fn section(role: &str) -> String {
    match role {
        "agent-registry" => "registry".to_owned(),
        "scoring-worker" => "scoring".to_owned(),
        role => role.replace('-', "_"),
    }
}

/// The part of docker-compose.yml that describes a service.
fn compose_service(compose: &str, name: &str) -> String {
    let start = compose.find(&format!("\n  {name}:\n")).unwrap_or_else(|| panic!("no service {name}"));
    let lines = compose[start + 1..].lines();
    let mut part = vec![];
    for (at, line) in lines.enumerate() {
        if at > 0 && !line.starts_with("   ") && !line.is_empty() {
            break;
        }
        part.push(line);
    }
    part.join("\n")
}

#[test]
fn every_role_is_deployed_everywhere() {
    let compose = read("docker-compose.yml");
    let kustomization = read("deploy/kubernetes/base/kustomization.yaml");
    let prometheus = read("deploy/observability/prometheus.yml");
    let names = prometheus.split_once("names: [").unwrap().1.split_once(']').unwrap().0;
    let scraped: Vec<&str> = names.split(',').map(str::trim).collect();
    for role in roles() {
        let service = compose_service(&compose, &role);
        assert!(service.contains(&format!("command: [{role}]")), "docker-compose.yml does not run {role}");
        assert!(kustomization.contains(&format!("- {role}.yaml\n")), "{role} is not in the kustomization");
        let manifest = read(&format!("deploy/kubernetes/base/{role}.yaml"));
        assert!(manifest.contains(&format!("args: [{role}]")), "no Deployment runs {role}");
        assert!(manifest.contains("kind: PodDisruptionBudget"), "{role} has no PodDisruptionBudget");
        assert!(scraped.contains(&role.as_str()), "Prometheus does not scrape {role}");
    }
}

#[test]
fn deployed_ports_match_the_settings() {
    let (defaults, compose) = (defaults(), read("docker-compose.yml"));
    let dockerfile = read("deploy/docker/Dockerfile");
    let in_cluster = read("deploy/kubernetes/base/settings.env");
    assert!(dockerfile.contains("ASSAY_TELEMETRY__METRICS_LISTEN=0.0.0.0:9464"), "metrics have another port");
    assert!(
        read("deploy/observability/prometheus.yml").contains("port: 9464\n"),
        "Prometheus scrapes another port"
    );
    for role in roles() {
        let section = section(&role);
        let listen = defaults[&section]["listen"].as_str().unwrap();
        let port = listen.rsplit_once(':').unwrap().1;
        let variable = format!("ASSAY_{}__LISTEN=0.0.0.0:{port}", section.to_uppercase());
        assert!(dockerfile.contains(&variable), "the image does not set {variable}");
        let check = format!("http://127.0.0.1:{port}/readyz");
        assert!(
            compose_service(&compose, &role).contains(&check),
            "docker-compose.yml does not ask {role} at {check}"
        );
        let manifest = read(&format!("deploy/kubernetes/base/{role}.yaml"));
        assert!(manifest.contains(&format!("{{name: http, containerPort: {port}}}")), "{role}: another port");
        assert!(
            manifest.contains("{name: metrics, containerPort: 9464}"),
            "{role}: metrics have another port"
        );
        if manifest.contains("kind: Service\n") {
            assert!(
                manifest.contains(&format!("{{name: http, port: {port}, targetPort: http}}")),
                "{role}: another port"
            );
        }
        if role != "gateway" && defaults["services"].get(format!("{section}_url")).is_some() {
            let key = format!("ASSAY_SERVICES__{}_URL", section.to_uppercase());
            assert!(
                in_cluster.contains(&format!("{key}=http://{role}:{port}\n")),
                "{key} leads elsewhere in Kubernetes"
            );
            assert!(
                compose.contains(&format!("{key}: http://{role}:{port}\n")),
                "{key} leads elsewhere in compose"
            );
        }
    }
}

#[test]
fn every_service_has_a_database_user_and_schema() {
    let (defaults, compose) = (defaults(), read("docker-compose.yml"));
    let cluster = read("deploy/kubernetes/components/operators/postgres.yaml");
    let mut seen = 0;
    for (schema, settings) in defaults.as_object().unwrap() {
        let Some(url) = settings.get("database_url").and_then(Value::as_str).filter(|url| !url.is_empty())
        else {
            continue;
        };
        seen += 1;
        let user = url.split_once("://").unwrap().1.split_once('@').unwrap().0;
        assert_eq!(user, format!("assay_{schema}"), "secrets.sh derives the name of the user like this");
        for script in ["deploy/docker/secrets.sh", "deploy/kubernetes/secrets.sh"] {
            let script_text = read(script);
            let made = script_text.split_once("for service in ").unwrap().1.split_once(';').unwrap().0;
            assert!(made.split(' ').any(|name| name == schema), "{script} makes no password for {user}");
        }
        assert!(cluster.contains(&format!("- CREATE ROLE {user} LOGIN\n")), "CloudNativePG: no user {user}");
        assert!(
            cluster.contains(&format!("- CREATE SCHEMA {schema} AUTHORIZATION {user}\n")),
            "no schema {schema}"
        );
        assert!(
            cluster.contains(&format!("{{name: {user}, ensure: present")),
            "CloudNativePG: no password for {user}"
        );
        let variable = format!("ASSAY_{}__DATABASE_URL_FILE", schema.to_uppercase());
        assert!(
            compose_service(&compose, "migrate").contains(&variable),
            "compose does not migrate {schema}"
        );
        assert!(
            read("deploy/kubernetes/base/migrate.yaml").contains(&variable),
            "the Job does not migrate {schema}"
        );
    }
    assert!(seen >= 4, "the databases were not found");
}

#[test]
fn compose_and_kubernetes_set_the_same_memory_limits() {
    let compose = read("docker-compose.yml");
    for role in roles() {
        let manifest = root().join(format!("deploy/kubernetes/base/{role}.yaml"));
        let bytes = assay_testkit::memory_limit_of_manifest(&manifest).unwrap();
        let service = compose_service(&compose, &role);
        let limit = service.lines().find_map(|line| line.trim().strip_prefix("mem_limit: ")).unwrap();
        let (count, unit) = limit.split_at(limit.len() - 1);
        let unit = match unit {
            "g" => 1 << 30,
            "m" => 1 << 20,
            unit => panic!("{role}: unit {unit:?}"),
        };
        assert_eq!(count.parse::<u64>().unwrap() * unit, bytes, "{role}");
    }
}

#[test]
fn compose_and_kubernetes_share_the_role_script() {
    let (docker, dev) = ("deploy/docker/postgres/roles.sh", "deploy/kubernetes/overlays/dev/roles.sh");
    assert!(read(docker) == read(dev), "cp {docker} {dev}");
}

#[test]
fn autoscaling_queues_exist() {
    let scaled = read("deploy/kubernetes/components/autoscaling/queues.yaml");
    let namespace = defaults()["bus"]["namespace"].as_str().unwrap().to_owned();
    for queue in [assay_scoring_worker::QUEUE, assay_export_worker::QUEUE, assay_webhooks::QUEUE] {
        assert!(
            scaled.contains(&format!("queueName: {namespace}.{queue}\n")),
            "no role is scaled by {queue}"
        );
    }
    assert_eq!(scaled.matches("queueName:").count(), 3);
}

#[test]
fn every_image_has_a_version() {
    let mut seen = 0;
    for (path, text) in deployment_files() {
        for line in text.lines().map(|line| line.trim().trim_start_matches("- ")) {
            let Some(image) = line.strip_prefix("image: ").or_else(|| line.strip_prefix("imageName: "))
            else {
                continue;
            };
            seen += 1;
            // The overlay sets the version.
            let is_ours = image == "assay" || image == "${ASSAY_IMAGE:-assay:local}";
            let has_version =
                image.rsplit_once(':').is_some_and(|(_, tag)| tag != "latest" && tag.contains('.'));
            assert!(is_ours || has_version, "{path}: {image}");
        }
    }
    assert!(seen > 10, "only {seen} images were found");
}

#[test]
fn image_is_built_with_the_toolchain_of_the_workspace() {
    let toolchain = read("rust-toolchain.toml");
    let version =
        toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"')).unwrap();
    let dockerfile = read("deploy/docker/Dockerfile");
    assert!(dockerfile.contains(&format!("ENV RUSTUP_TOOLCHAIN={version}\n")));
    let stages = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM "));
    // Other bases are stages of this file, or empty (`scratch`).
    let is_image = |base: &&str| !matches!(*base, "scratch" | "chef" | "${ROOT}");
    let images: Vec<_> = stages.filter_map(|stage| stage.split(' ').next()).filter(is_image).collect();
    assert_eq!(images, [format!("rust:{version}-bookworm")]);
}
