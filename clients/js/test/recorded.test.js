// Everything that leaves, found again in the random bytes that were given.
//
// `crypto.getRandomValues` is a recorded stream, and every other source and all clocks are refused.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { encode } from '../client/core.js';
import { Client } from '../deniable.js';
import { readVectors, toHex, utf8, vectorsIn } from './tools.js';

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
  let pages = {};
  return {
    book: { update: async (change) => (pages = change(structuredClone(pages))) },
    maxEpsilon: 32,
  };
}

const load = (bytes) => Client.load(bytes, device());

/** The rows that these coins make of the answers. */
async function rowsOf({ domains, reports }, answers, coins) {
  const rows = {};
  let at = 0;
  for (const { name, of, m } of reports) {
    const bytes = new Uint8Array(coins.subarray(at, (at += 8 * m.words)));
    const values = await Promise.all(of.map((one) => encode(one, domains[one], answers[one])));
    rows[name] = toHex(m.report(of.length > 1 ? values : values[0], bytes));
  }
  assert.equal(at, coins.length);
  return rows;
}

const once = Object.entries(vectorsIn('wire')).filter(([, { manifest }]) => JSON.parse(manifest).rounds === 1);

test('there are vectors with every mechanism, with several reports, with one that is drawn', () => {
  assert.ok(once.length > 20);
});

for (const [name, { manifest, good: [{ answers, fields }] }] of once) {
  test(`${name}: every coin and the id are random bytes of the operating system`, async () => {
    const ids = new Set();
    for (let person = 0; person < 3; person++) {
      const client = await load(utf8(manifest));
      const { result, pieces } = await recording(name, async () =>
        (await client.begin()).prepare(answers, fields));
      const { id, reports, round, collection } = JSON.parse(result.body);
      assert.deepEqual([round, collection], [1, client.digest]);
      assert.equal(pieces.pop(), id);
      // Drawn places come first, before there is any answer; then the rest, report by report.
      const places = client.reports.map(({ m }) => (m.family.asks ? pieces.shift() : ''));
      const coins = Buffer.from(places.map((place) => place + pieces.shift()).join(''), 'hex');
      assert.deepEqual(pieces, []);
      assert.deepEqual(reports, await rowsOf(client, answers, coins));
      ids.add(id);
    }
    assert.equal(ids.size, 1); // the stream is the same each time, and so is all else
  });
}

test('rounds: a secret once, and coins and an id each time', async () => {
  const { manifest, good: [{ answers, fields }] } = readVectors('wire/again.json');
  const client = await load(utf8(manifest));
  const remembers = client.reports.filter(({ again }) => again);
  const words = client.reports.reduce((sum, report) => sum + report.words, 0);
  assert.ok(remembers.length > 3);
  const bodies = [];
  for (const round of [1, 2]) {
    const { result, pieces } = await recording(`round ${round}`, async () =>
      (await client.begin(round)).prepare(answers, fields));
    const { id, round: told } = JSON.parse(result.body);
    assert.equal(told, round);
    assert.ok(pieces.includes(id));
    const drawn = pieces.join('').length / 2 - 16 - 8 * words;
    assert.equal(drawn, round === 1 ? 32 * remembers.length : 0);
    bodies.push(result.body);
  }
  assert.notEqual(bodies[0], bodies[1]);
});
