// What several tests need.

import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global

export const fromHex = (text) => new Uint8Array(Buffer.from(text, 'hex'));
export const toHex = (bytes) => Buffer.from(bytes).toString('hex');
export const readVectors = (name) =>
  JSON.parse(readFileSync(new URL(`../../../tests/vectors/v1/${name}`, import.meta.url)));

/** A book in memory, with all that is in it. */
export function memoryBook(entries = {}) {
  const book = {
    entries,
    async update(address, change) {
      book.entries[address] = structuredClone(change(structuredClone(book.entries[address] ?? {})));
    },
  };
  return book;
}

/** A book in which the draws of a round are kept already: so a test gives coins. */
export function bookWith(digest, round, { words, id = '11'.repeat(16), memos = {} }, address = '') {
  return memoryBook({ [address]: { [digest]: { epsilon: 1, memos, rounds: { [round]: { words, id } } } } });
}

export async function digestOf(bytes) {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

const SPEC = readVectors('reports.json').map(({ spec }) => spec);
export const specOf = (name) => structuredClone(SPEC.find((spec) => spec.mechanism === name));

const LABELS = ['car', 'train', 'other'];

/** A manifest with one question, changed by the caller; by then its epsilons are no promise. */
export function manifestOf(change = () => {}, mechanism = 'grr') {
  const spec = { ...specOf(mechanism), domain: { labels: LABELS } };
  if (spec.epsilon) spec.epsilon = 8;
  const question = { name: 'way', ask: 'How do you travel?', kind: 'choice', mechanism: spec };
  const manifest = {
    deniable: 1, title: 'A test', about: '', epsilon: 8, divide: 'split', rounds: 1, changes: 0,
    questions: [question],
  };
  change(manifest, question);
  return new TextEncoder().encode(JSON.stringify(manifest));
}
