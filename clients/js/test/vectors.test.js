// The vectors of tests/vectors/v2: the same bytes as in every other client, and the same refusals.
// Every file there is read; what this client does not know fails.

import assert from 'node:assert/strict';
import test from 'node:test';
import { KINDS, MECHANISMS } from '../client/core.js';
import { Client, encode, mechanism, report, tidy } from '../deniable.js';
import { bookWith, fromHex, memoryBook, placesOf, readVectors, toHex, utf8, vectorsIn } from './tools.js';

/** Encoded answers that doubles cannot hold are written as texts. */
const plain = (value) => {
  if (Array.isArray(value)) return value.map(plain);
  return typeof value === 'string' ? BigInt(value) : value;
};

const refusal = (work) => work.then(() => 'none', (error) => error.type ?? String(error.stack));

// ---- mechanisms

const mechanisms = vectorsIn('mechanisms');

test('every mechanism that this client knows has vectors', () => {
  assert.deepEqual([...MECHANISMS.keys()].sort(), Object.keys(mechanisms).sort());
});

for (const [name, { good, bad }] of Object.entries(mechanisms)) {
  test(`reports of ${name}`, async () => {
    for (const { spec, value, coins, row } of good) {
      const m = await mechanism(spec);
      const bytes = fromHex(coins);
      const found = await report(spec, plain(value), bytes);
      assert.ok(found instanceof Uint8Array);
      assert.equal(toHex(found), row);
      assert.equal(m.words * 8, bytes.length);
      assert.equal(toHex(m.report(plain(value), bytes)), row); // a pure function
      const longer = Uint8Array.from([...bytes, 0]);
      for (const wrong of [bytes.slice(8), bytes.slice(1), bytes.slice(0, 0), longer]) {
        assert.throws(() => m.report(plain(value), wrong), { name: 'DeniableError', type: 'coins' });
      }
    }
  });

  test(`what is refused of ${name}`, async () => {
    // Rows are for servers to refuse; this client only makes them.
    for (const { why, type, spec, row } of bad) {
      if (row === undefined) assert.equal(await refusal(mechanism(spec)), type, why);
    }
  });
}

// ---- kinds

const kinds = vectorsIn('kinds');

test('every kind that this client knows has vectors', () => {
  const named = new Set(Object.values(kinds).map(({ good }) => good[0].domain.kind));
  assert.deepEqual([...named].sort(), [...KINDS.keys(), 'several'].sort());
});

for (const [name, { good, bad }] of Object.entries(kinds)) {
  test(`answers of ${name}`, async () => {
    for (const { why, domain, answer, value, tidy: tidied } of good) {
      assert.deepEqual(await encode(domain, answer), plain(value), why);
      if (tidied !== undefined) assert.equal(tidy(answer, domain.fold), tidied, why);
    }
    for (const { why, type, domain, answer } of bad) {
      assert.equal(await refusal(encode(domain, answer)), type, why);
    }
  });
}

// ---- whole submissions

const address = 'https://example.org/v2/';
const to = `${address}submissions`;
const answering = (status) => async () => new Response(null, { status });

for (const [name, { manifest, digest, secrets, good }] of Object.entries(vectorsIn('wire'))) {
  test(`submissions of ${name}`, async () => {
    // A device whose secrets are given, and in whose book the coins are.
    let memos = {};
    JSON.parse(manifest).reports.forEach((one, i) => {
      if (secrets[one.name]) memos[i] = { secret: secrets[one.name], keys: [] };
    });
    for (const { answers, fields, round, coins, id, body } of good) {
      const options = { digest, maxEpsilon: 32, fetch: answering(201), to };
      const places = placesOf(await Client.load(utf8(manifest), { ...options, book: memoryBook() }), coins);
      const book = bookWith(digest, round, { words: coins, places, id, memos });
      const sheet = await (await Client.load(utf8(manifest), { ...options, book })).begin(round);
      const made = await sheet.prepare(answers, fields);
      assert.equal(made.body, body);
      assert.deepEqual(await sheet.prepare(answers, fields), made);
      const own = book.pages[digest];
      assert.equal(own.rounds[round].words, coins); // every coin was used, and no other
      await sheet.send();
      memos = book.pages[digest].memos;
    }
  });
}

test('what a device refuses before it answers', async () => {
  for (const { why, type, manifest, ...options } of readVectors('bad/manifests.json')) {
    const allowed = type === 'too-much' ? {} : { maxEpsilon: 32 };
    const loading = Client.load(utf8(manifest), { book: memoryBook(), ...allowed, ...options });
    assert.equal(await refusal(loading), type, why);
  }
});

for (const { why, type, steps } of readVectors('bad/books.json')) {
  test(`a book that refuses: ${why}`, async () => {
    const book = memoryBook();
    const found = [];
    for (const { manifest, answers, fields, round, status, another, elsewhere } of steps) {
      const place = elsewhere ? 'https://elsewhere.example/v2/submissions' : to;
      const options = { book, to: place, another, tries: 1, maxEpsilon: 32, fetch: answering(status) };
      const client = await Client.load(utf8(manifest), options);
      found.push(await refusal(client.answer(answers, round, fields)));
    }
    assert.equal(found.at(-1), type);
    assert.ok(found.slice(0, -1).every((word) => word !== type), found.join());
  });
}
