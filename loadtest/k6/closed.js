// Closed loop: 25 callers, each with its next review as soon as the last is answered.
//
//   k6 run -e TARGET=https://127.0.0.1:8443 -e BODIES=… [-e SECONDS=10] closed.js

import exec from 'k6/execution';
import { figures, review, settings } from './webhook.js';

export const options = {
  ...settings,
  scenarios: {
    closed: { executor: 'constant-vus', vus: 25, duration: `${__ENV.SECONDS || 10}s` },
  },
};

export default function () {
  review(exec.scenario.iterationInTest);
}

export function handleSummary(data) {
  return figures(data);
}
