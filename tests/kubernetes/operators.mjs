// Validates operators' objects in a JSON file against their published schemas; lists those without one.
// Usage: operators.mjs OBJECTS.json NODE_MODULES
import { readFileSync } from "node:fs";

const packages = {
  "keda.sh/v1alpha1": "keda",
  "monitoring.coreos.com/v1": "prometheus-operator",
  "postgresql.cnpg.io/v1": "cloudnative-pg",
};
const [objects, modules] = process.argv.slice(2);

let failed = false;
for (const object of JSON.parse(readFileSync(objects, "utf8"))) {
  const name = `${object.kind} ${object.metadata.name}`;
  const folder = packages[object.apiVersion];
  if (!folder) {
    console.log(`skipped: ${name}, no schema of ${object.apiVersion} is published`);
    continue;
  }
  const models = await import(`${modules}/@kubernetes-models/${folder}/${object.apiVersion}/index.js`);
  try {
    new models[object.kind](object).validate();
  } catch (error) {
    failed = true;
    console.error(`${name}: ${error.message}`);
  }
}
process.exit(failed ? 1 : 0);
