// The vectors of tests/vectors/v1: the same bytes as in every other client.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';
import { Client, mechanism, report, textCode, tidy } from '../deniable.js';
import { bookWith, fromHex, memoryBook, readVectors, toHex } from './tools.js';

const little = (x, bytes) => toHex(Uint8Array.from({ length: bytes }, (_, i) => x / 256 ** i));
const needed = (size) => (size <= 256 ? 1 : size <= 65536 ? 2 : 4);

/** The row of a report as the vectors write it: integers have the length that the spec says. */
function rowOf({ mechanism: name, domain, design }, found) {
  if (typeof found === 'string') return found;
  const k = domain.size ?? domain.labels?.length;
  if (Array.isArray(found)) {
    const part = (x, i) => little(x, i < 3 ? 4 : needed(design.g));
    if (found.length === 4) return found.map(part).join('');
    const [first, inner] = found;
    if (typeof first === 'string') return first + inner;
    const rows = 2 ** Math.ceil(Math.log2(design.width ?? 2));
    const size = name === 'hcms' ? 2 * rows : design.width;
    const rest = typeof inner === 'string' ? inner : little(inner, needed(size));
    return little(first, needed(design.cohorts)) + rest;
  }
  const sizes = {
    hr: Math.ceil(k / (design.block - 1)) * design.block,
    hrr: 2 * 2 ** Math.ceil(Math.log2(k)),
    shist: 2 * design.b,
  };
  return little(found, needed(sizes[name] ?? k));
}

async function codeOf(text) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return new DataView(digest).getBigUint64(0, true);
}

const vectors = readVectors('reports.json');

test('the vectors have all 28 mechanisms', () => {
  assert.equal(new Set(vectors.map(({ spec }) => spec.mechanism)).size, 28);
});

for (const [i, { spec, reports }] of vectors.entries()) {
  test(`vector ${i}: ${spec.mechanism}`, async () => {
    const m = await mechanism(spec);
    for (const { value, coins, report: found } of reports) {
      const index = typeof value === 'string' ? await codeOf(value) : value;
      const bytes = fromHex(coins);
      const row = await report(spec, index, bytes);
      assert.ok(row instanceof Uint8Array);
      assert.equal(toHex(row), rowOf(spec, found));
      assert.equal(m.coinWords * 8, bytes.length);
      // A pure function: the same again, and from its steps.
      assert.equal(toHex(m.report(index, bytes)), toHex(row));
      const cut = [0, m.words[0], m.words[0] + m.words[1], m.coinWords];
      const [first, second, third] = [0, 1, 2].map((j) => bytes.slice(8 * cut[j], 8 * cut[j + 1]));
      const begun = m.begin(first);
      const kept = m.memoise(begun, m.key(begun, index), second);
      assert.equal(toHex(m.instant(begun, kept, third)), toHex(row));
      const longer = Uint8Array.from([...bytes, 0]);
      for (const wrong of [bytes.slice(8), bytes.slice(1), bytes.slice(0, 0), longer]) {
        assert.throws(() => m.report(index, wrong), { name: 'DeniableError', type: 'coins' });
      }
    }
  });
}

const texts = readVectors('texts.json');

test('texts are tidied before they are hashed', async () => {
  for (const { why, text, fold, tidy: tidied, code } of texts.good) {
    assert.equal(tidy(text, fold), tidied, why);
    const found = new DataView(fromHex(code).buffer).getBigUint64(0, true);
    assert.equal(await codeOf(tidied), found, why);
    if (fold === 'case') assert.equal(await textCode(text), found, why);
  }
});

test('blanks are no answer', async () => {
  const { manifest } = readVectors('wire.json').at(-1);
  const options = { book: memoryBook(), maxEpsilon: 32 };
  const sheet = await (await Client.load(new TextEncoder().encode(manifest), options)).begin();
  for (const { why, text, type } of texts.bad) {
    await assert.rejects(textCode(text), { type }, why);
    await assert.rejects(sheet.prepare({ word: text }), { type, message: /"word"/ }, why);
  }
});

test('five spellings are one answer', async () => {
  const { manifest, digest, submissions: [{ answers, coins, id }] } = readVectors('wire.json')[0];
  const bodies = new Set();
  for (const word of ['tea', 'tea ', ' Tea', 'TEA', '\u00a0tea', '\u3000Tea\ufeff']) {
    // Coins of zeros keep the cell.
    const book = bookWith(digest, 1, { words: '0'.repeat(coins.length), id });
    const options = { book, maxEpsilon: 32 };
    const sheet = await (await Client.load(new TextEncoder().encode(manifest), options)).begin();
    bodies.add((await sheet.prepare({ ...answers, word })).body);
  }
  assert.equal(bodies.size, 1);
});

const wire = new URL('../../../tests/vectors/v1/wire.json', import.meta.url);
const skip = !existsSync(wire) && 'tests/vectors/v1/wire.json is not there yet';

test('whole submissions', { skip }, async (t) => {
  for (const { title, manifest, digest, secrets, submissions } of readVectors('wire.json')) {
    await t.test(title, async () => {
      const bytes = new TextEncoder().encode(manifest);
      const { questions } = JSON.parse(manifest);
      // A device whose secrets are given, and in whose book the coins are.
      let memos = {};
      questions.forEach(({ name }, place) => {
        if (secrets[name]) memos[place] = { secret: secrets[name], keys: [] };
      });
      const fetch = async () => new Response(null, { status: 201 });
      for (const { answers, round, coins, id, body } of submissions) {
        const address = 'https://example.org/v1/';
        const book = bookWith(digest, round, { words: coins, id, memos }, address);
        const options = { digest, book, maxEpsilon: 32, fetch, to: `${address}submissions` };
        const sheet = await (await Client.load(bytes, options)).begin(round);
        const made = await sheet.prepare(answers);
        assert.equal(made.body, body);
        assert.deepEqual(await sheet.prepare(answers), made);
        const own = book.entries[address][digest];
        assert.equal(own.rounds[round].words, coins); // every coin was used, and no other
        await sheet.send();
        memos = book.entries[address][digest].memos;
      }
    });
  }
});
