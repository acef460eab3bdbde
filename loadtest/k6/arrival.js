// Constant arrival rate: reviews start on time, whether or not earlier ones are answered.
//
//   k6 run -e TARGET=https://127.0.0.1:8443 -e BODIES=… [-e RATE=500] [-e SECONDS=10] arrival.js

import exec from 'k6/execution';
import { figures, review, settings } from './webhook.js';

export const options = {
  ...settings,
  scenarios: {
    arrival: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE || 500),
      timeUnit: '1s',
      duration: `${__ENV.SECONDS || 10}s`,
      preAllocatedVUs: 25,
      maxVUs: 200,
    },
  },
};

export default function () {
  review(exec.scenario.iterationInTest);
}

export function handleSummary(data) {
  return figures(data);
}
