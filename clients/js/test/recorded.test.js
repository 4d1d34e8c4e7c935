// Everything that leaves, found again in the random bytes that were given.
//
// `crypto.getRandomValues` is a recorded stream, and every other source and all clocks are refused.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { Client, mechanism, textCode } from '../deniable.js';
import { readVectors, toHex } from './tools.js';

const CASES = readVectors('wire.json').map(({ manifest, submissions }) => ({
  bytes: new TextEncoder().encode(manifest), manifest: JSON.parse(manifest), submissions,
}));
const caseOf = (fits) => CASES.find(({ manifest }) => fits(manifest));

/** Replaces all randomness by the stream of a name while `work` runs; returns what it was given. */
async function recording(name, work) {
  const pieces = [];
  let count = 0;
  const fill = (bytes) => {
    for (let at = 0; at < bytes.length; at += 32) {
      const block = createHash('sha256').update(`${name} ${count++}`).digest();
      bytes.set(block.subarray(0, bytes.length - at), at);
    }
    assert.ok(bytes.length < 65536, 'a draw in one piece');
    pieces.push(toHex(bytes.subarray(512))); // those before are only looked at
    return bytes;
  };
  const refused = (name) => () => assert.fail(`${name} was asked on the way to a report`);
  const places = [[crypto, 'getRandomValues', fill], [crypto, 'randomUUID'], [Math, 'random'],
    [Date, 'now'], [performance, 'now'], [process, 'hrtime']];
  const before = places.map(([place, name]) => Object.getOwnPropertyDescriptor(place, name));
  for (const [place, name, value = refused(name)] of places) {
    Object.defineProperty(place, name, { value, configurable: true, writable: true });
  }
  try {
    return { result: await work(), pieces };
  } finally {
    places.forEach(([place, name], i) => {
      if (before[i]) Object.defineProperty(place, name, before[i]);
      else delete place[name];
    });
  }
}

/** A device that remembers until the test ends. */
function device() {
  let entry = {};
  return {
    book: { update: async (_, change) => (entry = change(structuredClone(entry))) },
    maxEpsilon: 32,
  };
}

const load = (bytes) => Client.load(bytes, device());

async function indexOf({ kind, edges, mechanism: { domain } }, answer) {
  if (kind === 'text') return textCode(answer);
  if (kind === 'number') return edges.filter((edge) => edge <= answer).length;
  const said = kind === 'yes/no' && typeof answer === 'boolean' ? (answer ? 'yes' : 'no') : answer;
  return domain.labels.indexOf(said);
}

/** The rows that these coins make of the answers. */
async function rowsOf({ divide, questions }, answers, coins) {
  const made = await Promise.all(questions.map(({ mechanism: spec }) => mechanism(spec)));
  const rows = {};
  let at = 0;
  let asked = questions.keys();
  if (divide === 'sampled') {
    const word = coins.readBigUInt64LE(0);
    asked = [Number((word * BigInt(questions.length)) >> 64n)];
    at = 8;
  }
  for (const place of asked) {
    const { name } = questions[place];
    const bytes = new Uint8Array(coins.subarray(at, (at += 8 * made[place].coinWords)));
    rows[name] = toHex(made[place].report(await indexOf(questions[place], answers[name]), bytes));
  }
  return rows;
}

for (const divide of ['split', 'sampled']) {
  test(`${divide}: every coin and the id are random bytes of the operating system`, async () => {
    const { bytes, manifest, submissions: [{ answers }] } = caseOf(
      (m) => m.rounds === 1 && m.divide === divide);
    const ids = new Set();
    for (let person = 0; person < 3; person++) {
      const client = await load(bytes);
      const { result, pieces } = await recording(divide, async () =>
        (await client.begin()).prepare(answers));
      const { id, reports, round, collection } = JSON.parse(result.body);
      assert.deepEqual([round, collection], [1, client.digest]);
      assert.ok(pieces.includes(id));
      const coins = Buffer.from(pieces.filter((piece) => piece !== id).join(''), 'hex');
      const most = await Promise.all(manifest.questions.map(async (q) =>
        (await mechanism(q.mechanism)).coinWords));
      const words = divide === 'split' ? most.reduce((x, y) => x + y) : 1 + Math.max(...most);
      assert.equal(coins.length, 8 * words);
      assert.deepEqual(reports, await rowsOf(manifest, answers, coins));
      ids.add(id);
    }
    assert.equal(ids.size, 1); // the stream is the same each time, and so is all else
  });
}

test('every mechanism: coins and id', async () => {
  const known = caseOf((m) => m.rounds === 1 && m.questions.length > 20);
  const { bytes, manifest, submissions: [{ answers }] } = known;
  const client = await load(bytes);
  const { result, pieces } = await recording('all', async () =>
    (await client.begin()).prepare(answers));
  const { id, reports } = JSON.parse(result.body);
  assert.ok(pieces.includes(id));
  const coins = Buffer.from(pieces.filter((piece) => piece !== id).join(''), 'hex');
  assert.deepEqual(reports, await rowsOf(manifest, answers, coins));
});

test('rounds: a secret once, and coins and an id each time', async () => {
  const { bytes, manifest, submissions: [{ answers }] } = caseOf((m) => m.rounds > 1);
  const client = await load(bytes);
  const made = await Promise.all(manifest.questions.map((q) => mechanism(q.mechanism)));
  const remembers = made.filter((m) => m.twoSteps);
  const words = made.reduce((sum, m) => sum + (m.twoSteps ? 1 + m.words[2] : m.coinWords), 0);
  const bodies = [];
  for (const round of [1, 2]) {
    const { result, pieces } = await recording(`round ${round}`, async () =>
      (await client.begin(round)).prepare(answers));
    const { id, round: told } = JSON.parse(result.body);
    assert.equal(told, round);
    assert.ok(pieces.includes(id));
    const drawn = pieces.join('').length / 2 - 16 - 8 * words;
    assert.equal(drawn, round === 1 ? 32 * remembers.length : 0);
    bodies.push(result.body);
  }
  assert.notEqual(bodies[0], bodies[1]);
});
