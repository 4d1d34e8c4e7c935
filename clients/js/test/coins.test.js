// The secure path has the law that the integers say.
//
// Null hypothesis: reports with coins of `crypto.getRandomValues` are independent, with the
// probabilities of the thresholds. A sound client fails one of these with probability 1e-9 each.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, mechanism, secureBytes } from '../deniable.js';
import { readVectors, specOf, utf8 } from './tools.js';

const N = 20_000;
/** Quantiles of chi-square at 1 - 1e-9, by degrees of freedom. */
const MOST = { 1: 37.33, 4: 47.88, 9: 60.67 };

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
  for (let i = 0; i < N; i++) counts[m.report(3, secureBytes(8 * m.words))[0]] += 1;
  const keep = share(spec.mechanism.thresholds.keep);
  chiSquare(counts, counts.map((_, v) => (1 - keep) / 10 + (v === 3 ? keep : 0)));
});

test('oue: every bit as often as it should be', async () => {
  const spec = specOf('oue');
  spec.domain.size = 5;
  const m = await mechanism(spec);
  const ones = Array(5).fill(0);
  for (let i = 0; i < N; i++) {
    const [byte] = m.report(4, secureBytes(8 * m.words));
    for (let v = 0; v < 5; v++) ones[v] += (byte >> v) & 1;
  }
  const { one, zero } = spec.mechanism.thresholds;
  for (let v = 0; v < 5; v++) {
    const p = share(v === 4 ? one : zero);
    chiSquare([ones[v], N - ones[v]], [p, 1 - p]);
  }
});

test('sampled: every question as often as its weight says', async () => {
  const client = await Client.load(utf8(readVectors('wire/sampled.json').manifest), { book: null });
  const names = client.manifest.questions.map(({ name }) => name);
  const { branches } = client.manifest.reports[0].mechanism;
  const counts = names.map(() => 0);
  for (let i = 0; i < N; i++) counts[names.indexOf((await client.begin()).questions[0].name)] += 1;
  chiSquare(counts, names.map((name) => branches.find(({ of }) => of[0] === name).weight / 65536));
});

test('drr: the cell is right on average, and kept as often as it should be', async () => {
  const spec = readVectors('mechanisms/drr.json').good[0].spec; // two cells, none for a skip
  const m = await mechanism(spec);
  const { keep } = spec.mechanism.thresholds;
  const value = 2 ** 30; // a quarter of the range
  const counts = [0, 0];
  for (let i = 0; i < N; i++) counts[m.report(value, secureBytes(8 * m.words))[1]] += 1;
  const upper = share(keep) / 4 + (1 - share(keep)) / 2;
  chiSquare(counts, [1 - upper, upper]);
});

test('many coins at once are all random', () => {
  // Each byte of 200,000 is 0 with probability 1/256; a block that was not filled would show.
  const bytes = secureBytes(200_000);
  for (let at = 0; at + 64 <= bytes.length; at += 64) {
    assert.ok(bytes.subarray(at, at + 64).some((byte) => byte !== 0));
  }
});
