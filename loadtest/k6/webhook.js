// Sends a review to the webhook and checks its answer; all loads use it.
//
//   TARGET  https://HOST:PORT of the webhook
//   BODIES  folder of bodies with expected.json (cargo run --example load -- reviews FOLDER)
//   ECHO    if set, only the status is checked: for the echo and other injectors
//   OUT     file for the figures

import { check } from 'k6';
import http from 'k6/http';

const folder = __ENV.BODIES;
const expected = JSON.parse(open(`${folder}/expected.json`));
const uid = '5e2b94f7-3c0d-4a18-b6f5-91d7e08ac263';
const names = Object.keys(expected.mix);
// Split at the uid, because each review gets its own.
const split = (name) => open(`${folder}/${name}.json`).split(uid);
const bodies = Object.fromEntries(names.map((name) => [name, split(name)]));
const params = Object.fromEntries(names.map((name) => [name, {
  headers: { 'Content-Type': 'application/json', 'User-Agent': 'kube-apiserver-admission' },
  tags: { name },
}]));
// The mix of each path.
const decks = {};
for (const name of names) {
  const path = expected.paths[name] || '/';
  decks[path] = (decks[path] || []).concat(Array(expected.mix[name]).fill(name));
}

// Far above the measured times: a machine of two cores runs the client, too. The summary of the
// load test has the budgets, as ratios.
export const thresholds = {
  checks: ['rate==1'],
  http_req_failed: ['rate==0'],
  http_req_duration: ['p(50)<1000', 'p(99)<5000'],
};
for (const name of names) {
  thresholds[`http_req_duration{name:${name}}`] = ['p(99)<5000'];
}

export const settings = {
  insecureSkipTLSVerify: true,
  discardResponseBodies: false,
  summaryTrendStats: ['count', 'med', 'p(99)', 'max'],
  thresholds,
};

export function review(iteration, path = '/') {
  const deck = decks[path];
  const name = deck[(iteration * 37) % deck.length];
  const own = `${uid.slice(0, 24)}${String(iteration).padStart(12, '0')}`;
  const url = `${__ENV.TARGET}${path}?timeout=10s`;
  const answer = http.post(url, bodies[name].join(own), params[name]);
  if (__ENV.ECHO) {
    check(answer, { 'status 200': ({ status }) => status === 200 });
    return;
  }
  const marks = [`"uid":"${own}"`, ...expected.contains[name]];
  check(answer, {
    'status 200': ({ status }) => status === 200,
    'uid and verdict': ({ body }) => marks.every((mark) => body.includes(mark)),
  });
}

// The figures that the load test reads.
export function figures(data) {
  const { metrics } = data;
  const trends = Object.entries(metrics).filter(([name]) => name.startsWith('http_req_duration'));
  const found = {
    reviews: metrics.iterations.values.count,
    per_second: metrics.iterations.values.rate,
    checks: metrics.checks.values,
    dropped: metrics.dropped_iterations ? metrics.dropped_iterations.values.count : 0,
    milliseconds: Object.fromEntries(trends.map(([name, metric]) => [name, metric.values])),
    crossed: Object.entries(metrics).filter(([, metric]) =>
      Object.values(metric.thresholds || {}).some(({ ok }) => !ok)).map(([name]) => name),
  };
  return { [__ENV.OUT || 'stdout']: `${JSON.stringify(found, null, 1)}\n` };
}
