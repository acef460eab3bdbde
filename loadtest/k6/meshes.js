// All meshes of one process: callers of the webhooks of Linkerd, Istio and sidecar templates, in closed loops.
//
//   cargo run --example load -- reviews FOLDER --meshes
//   k6 run -e TARGET=https://127.0.0.1:8443 -e BODIES=FOLDER [-e SECONDS=10] meshes.js

import exec from 'k6/execution';
import { figures, review, settings } from './webhook.js';

const callers = { executor: 'constant-vus', vus: 8, duration: `${__ENV.SECONDS || 10}s` };
const meshes = ['linkerd', 'istio', 'templates'];

export const options = {
  ...settings,
  thresholds: {
    ...settings.thresholds,
    // A threshold makes k6 report the times of each mesh.
    ...Object.fromEntries(meshes.map((mesh) =>
      [`http_req_duration{scenario:${mesh}}`, ['p(99)<5000']])),
  },
  scenarios: Object.fromEntries(meshes.map((mesh) => [mesh, { ...callers, exec: mesh }])),
};

export function linkerd() {
  review(exec.scenario.iterationInTest);
}

export function istio() {
  review(exec.scenario.iterationInTest, '/inject');
}

export function templates() {
  review(exec.scenario.iterationInTest, '/templates');
}

export function handleSummary(data) {
  return figures(data);
}
