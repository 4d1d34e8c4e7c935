// The secure path has the law that the integers say.
//
// Null hypothesis: reports with coins of `crypto.getRandomValues` are independent, with the
// probabilities of the thresholds. A sound client fails one of these with probability 1e-9 each.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, mechanism, secureBytes } from '../deniable.js';
import { readVectors, specOf } from './tools.js';

const N = 20_000;
/** Quantiles of chi-square at 1 - 1e-9, by degrees of freedom. */
const MOST = { 1: 37.33, 3: 44.85, 9: 60.67 };

function chiSquare(counts, probabilities) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  assert.ok(Math.abs(probabilities.reduce((x, y) => x + y) - 1) < 1e-9);
  const expected = probabilities.map((p) => total * p);
  const terms = counts.map((count, i) => (count - expected[i]) ** 2 / expected[i]);
  const found = terms.reduce((x, y) => x + y);
  assert.ok(found < MOST[counts.length - 1], `chi-square ${found}`);
}

const share = (threshold) => Number(threshold) / 2 ** 64;

test('grr: every answer as often as it should be', async () => {
  const spec = specOf('grr');
  const m = await mechanism(spec);
  const counts = Array(10).fill(0);
  for (let i = 0; i < N; i++) counts[m.report(3, secureBytes(8 * m.coinWords))[0]] += 1;
  const keep = share(spec.thresholds.keep);
  chiSquare(counts, counts.map((_, v) => (1 - keep) / 10 + (v === 3 ? keep : 0)));
});

test('oue: every bit as often as it should be', async () => {
  const spec = { ...specOf('oue'), domain: { size: 5 } };
  const m = await mechanism(spec);
  const ones = Array(5).fill(0);
  for (let i = 0; i < N; i++) {
    const [byte] = m.report(4, secureBytes(8 * m.coinWords));
    for (let v = 0; v < 5; v++) ones[v] += (byte >> v) & 1;
  }
  const { one, zero } = spec.thresholds;
  for (let v = 0; v < 5; v++) {
    const p = share(v === 4 ? one : zero);
    chiSquare([ones[v], N - ones[v]], [p, 1 - p]);
  }
});

test('sampled: every question as often as the others', async () => {
  const bytes = new TextEncoder().encode(readVectors('wire.json')[1].manifest);
  const client = await Client.load(bytes, { book: null });
  const names = client.manifest.questions.map(({ name }) => name);
  const counts = names.map(() => 0);
  for (let i = 0; i < N; i++) counts[names.indexOf((await client.begin()).questions[0].name)] += 1;
  chiSquare(counts, names.map(() => 1 / names.length));
});

test('many coins at once are all random', () => {
  // Each byte of 200,000 is 0 with probability 1/256; a block that was not filled would show.
  const bytes = secureBytes(200_000);
  for (let at = 0; at + 64 <= bytes.length; at += 64) {
    assert.ok(bytes.subarray(at, at + 64).some((byte) => byte !== 0));
  }
});
