// What several tests need.

import { webcrypto } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { canonical } from '../client/core.js';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global

const VECTORS = new URL('../../../tests/vectors/v2/', import.meta.url);

export const fromHex = (text) => new Uint8Array(Buffer.from(text, 'hex'));
export const toHex = (bytes) => Buffer.from(bytes).toString('hex');
export const utf8 = (text) => new TextEncoder().encode(text);
export const readVectors = (name) => JSON.parse(readFileSync(new URL(name, VECTORS)));

/** All files of a folder of vectors, by name. */
export const vectorsIn = (folder) => Object.fromEntries(readdirSync(new URL(folder, VECTORS))
  .map((file) => [file.replace('.json', ''), readVectors(`${folder}/${file}`)]));

/** A book in memory, with all its pages. */
export function memoryBook(pages = {}) {
  const book = {
    pages,
    async update(change) {
      book.pages = structuredClone(change(structuredClone(book.pages)));
    },
  };
  return book;
}

/** A book in which the draws of a round are kept already: so a test gives coins. */
export function bookWith(digest, round, { words, places = [''], id = '11'.repeat(16), memos = {} }) {
  const own = { epsilon: 1, root: digest, at: {}, memos, rounds: { [round]: { places, words, id } } };
  return memoryBook({ [digest]: own });
}

/** The words of drawn places among the coins of a submission: the first of their reports. */
export function placesOf({ reports }, coins) {
  let at = 0;
  return reports.map(({ m, words }) => {
    const start = at;
    at += 16 * words;
    return m.family.asks ? coins.slice(start, start + 16) : '';
  });
}

export async function digestOf(bytes) {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

/** The spec of a mechanism that the vectors have. */
export const specOf = (name) => structuredClone(readVectors(`mechanisms/${name}.json`).good[0].spec);

const ANSWERS = ['car', 'train', 'other'];

/**
 * A manifest with one question, changed by the caller, who gets the manifest, the question and the
 * mechanism. Its epsilons are no promise, unless they are changed.
 */
export function manifestOf(change = () => {}, name = 'grr') {
  const { mechanism } = specOf(name);
  if (mechanism.epsilon) mechanism.epsilon = 8;
  const question = { name: 'way', kind: 'choice', optional: false, answers: ANSWERS, ordered: false, other: null };
  const manifest = {
    deniable: 2, epsilon: 8, unbounded: [], rounds: 1, changes: 0, fields: [], after: null,
    questions: [question], reports: [{ name: 'way', of: ['way'], mechanism }],
  };
  change(manifest, question, mechanism);
  return utf8(canonical(manifest));
}
