// What several tests need.

import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global

export const fromHex = (text) => new Uint8Array(Buffer.from(text, 'hex'));
export const toHex = (bytes) => Buffer.from(bytes).toString('hex');
export const readVectors = (name) =>
  JSON.parse(readFileSync(new URL(`../../../tests/vectors/v1/${name}`, import.meta.url)));

/** Coins from given bytes, in the order in which they are asked for. */
export function givenBytes(...parts) {
  let bytes = Buffer.concat(parts);
  return (count) => {
    const some = new Uint8Array(bytes.subarray(0, count));
    bytes = bytes.subarray(count);
    if (some.length < count) throw new Error('the test gave too few bytes');
    return some;
  };
}

/** A storage like localStorage. */
export function memory(entries = {}) {
  const map = new Map(Object.entries(entries));
  return {
    map,
    getItem: (name) => map.get(name) ?? null,
    setItem: (name, value) => void map.set(name, value),
  };
}

const SPEC = readVectors('reports.json').map(({ spec }) => spec);
export const specOf = (name) => structuredClone(SPEC.find((spec) => spec.mechanism === name));

const LABELS = ['car', 'train', 'other'];

/** A manifest with one question, changed by the caller. */
export function manifestOf(change = () => {}, mechanism = 'grr') {
  const spec = { ...specOf(mechanism), domain: { labels: LABELS } };
  const question = { name: 'way', ask: 'How do you travel?', kind: 'choice', mechanism: spec };
  const manifest = {
    deniable: 1, title: 'A test', about: '', epsilon: 32, divide: 'split', rounds: 1, changes: 0,
    questions: [question],
  };
  change(manifest, question);
  return new TextEncoder().encode(JSON.stringify(manifest));
}
