// Devices that remember.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from '../deniable.js';
import { bookWith, digestOf, manifestOf, memoryBook } from './tools.js';

const again = (m) => Object.assign(m, { rounds: 9, changes: 1, epsilon: 8 });
const words = (m) => {
  again(m);
  m.questions = [{ name: 'way', kind: 'text', optional: false, fold: 'case', max_bytes: 64 }];
};

const to = 'https://example.org/v2/submissions';
const place = 'https://example.org/v2/';
const counted = async () => new Response(null, { status: 201 });
const load = (options, bytes = manifestOf(again, 'lgrr')) =>
  Client.load(bytes, { to, fetch: counted, maxEpsilon: 32, ...options });

/** Gives coins that are below every threshold to a round: `instant` of lgrr then reports what is kept. */
function plainly(book, { digest, manifest }, round, first = '00'.repeat(8)) {
  const own = (book.pages[digest] ??= { epsilon: manifest.epsilon, root: digest, at: {}, memos: {}, rounds: {} });
  own.rounds[round] = { places: [''], words: first + '00'.repeat(16), id: '11'.repeat(16) };
}

const memoOf = (book, { digest }) => book.pages[digest].memos[0];

async function sent(book, way, round = 1, first = undefined) {
  const client = await load({ book });
  plainly(book, client, round, first);
  const sheet = await client.begin(round);
  const { reports } = await sheet.prepare({ way });
  await sheet.send();
  return reports.way;
}

test('the same key has the same permanent answer for ever', async () => {
  const kept = new Set();
  for (let device = 0; device < 40; device++) {
    const book = memoryBook();
    const seen = new Set();
    // A new client each time: only the book remembers.
    for (let round = 1; round <= 3; round++) seen.add(await sent(book, 'train', round));
    assert.equal(seen.size, 1);
    kept.add([...seen][0]);
  }
  // And it is drawn: an answer is kept with at most 0.6 here, so that 40 devices are all alike with
  // a probability of at most 3 * 0.6^40 < 1e-8.
  assert.ok(kept.size > 1);
});

test('a preview occupies no key: it is on record when the first byte is sent', async () => {
  const book = memoryBook();
  const posted = [];
  const fetch = async (url, { body }) => {
    posted.push([structuredClone(memoOf(book, client).keys), body]);
    return counted();
  };
  const client = await load({ book, fetch });
  const sheet = await client.begin();
  for (const way of ['car', 'train', 'other']) {
    await sheet.prepare({ way });
    assert.deepEqual(memoOf(book, client).keys, []);
  }
  const { secret } = memoOf(book, client);
  assert.match(secret, /^[0-9a-f]{64}$/);
  const { body } = await sheet.prepare({ way: 'train' });
  await sheet.send();
  assert.deepEqual(posted, [[['1'], body]]);
  await client.answer({ way: 'car' }, 2);
  assert.deepEqual(memoOf(book, client), { secret, keys: ['0', '1'] });
});

test('no more keys than the budget: then a key in use is reported', async () => {
  const book = memoryBook();
  const car = await sent(book, 'car', 1);
  const train = await sent(book, 'train', 2);
  const before = memoOf(book, await load({ book }));
  assert.equal(await sent(book, 'other', 3), car); // the low word chooses the first key
  assert.equal(await sent(book, 'other', 4, 'ff'.repeat(8)), train); // a high word chooses the last
  assert.equal(await sent(book, 'car', 5, 'ff'.repeat(8)), car);
  assert.deepEqual(memoOf(book, await load({ book })), before);
});

test('a sheet eats as many coins whatever the answer and the memo', async () => {
  const book = memoryBook();
  const client = await load({ book });
  for (const [i, way] of ['car', 'train', 'other', 'car'].entries()) {
    const sheet = await client.begin(i + 1);
    await sheet.prepare({ way });
    assert.equal(book.pages[client.digest].rounds[i + 1].words.length, 2 * 24);
    await sheet.send();
  }
});

const full = async () => { throw new Error('full'); };
const books = {
  'that cannot be used': { update: full },
  'that is none': {},
  'that does nothing': { update: async () => {} },
};

for (const [name, book] of Object.entries(books)) {
  test(`nothing is sent with a book ${name}`, async () => {
    const fetch = () => assert.fail('something was sent');
    const client = await load({ book, fetch });
    await assert.rejects(client.answer({ way: 'car' }), { name: 'DeniableError', type: 'memo' });
  });
}

test('nothing is sent if the book fails at the last moment', async () => {
  const book = memoryBook();
  const client = await load({ book, fetch: () => assert.fail('something was sent') });
  const sheet = await client.begin();
  await sheet.prepare({ way: 'car' });
  const before = structuredClone(book.pages);
  const { update } = book;
  book.update = full;
  await assert.rejects(sheet.send(), { type: 'memo' });
  assert.equal(sheet.body, undefined);
  assert.deepEqual(book.pages, before);
  book.update = update;
  await assert.rejects(sheet.send(), /something was sent/);
});

test('damaged memos are refused and left alone', async () => {
  const secret = '00'.repeat(32);
  const damaged = [{}, { secret }, { secret: 'ab', keys: [] }, { secret, keys: ['0', '1', '2'] },
    { secret, keys: ['x'] }, { secret, keys: null }];
  for (const memo of damaged) {
    const book = memoryBook();
    const client = await load({ book });
    book.pages = { [client.digest]: { epsilon: 8, root: client.digest, at: {}, memos: { 0: memo }, rounds: {} } };
    const sheet = await client.begin();
    await assert.rejects(sheet.prepare({ way: 'car' }));
    assert.deepEqual(memoOf(book, client), memo);
  }
});

test('without a book a collection that remembers is refused', async () => {
  for (const book of [null, undefined]) await assert.rejects(load({ book }), { type: 'memo' });
  const once = manifestOf(undefined, 'lgrr');
  await assert.rejects(load({}, once), { type: 'memo' }); // nobody said that there is none
  await (await load({ book: null }, once)).answer({ way: 'car' });
});

test('many at once share one secret and one budget, also in a slow book', async () => {
  const book = memoryBook();
  const { update } = book;
  let turn = Promise.resolve();
  book.update = (change) => (turn = turn.catch(() => {}).then(async () => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    return update(change);
  }));
  const secrets = new Set();
  const client = await load({ book });
  await Promise.all(['car', 'train', 'other', 'car'].map(async (way, i) => {
    await client.answer({ way }, i + 1);
    secrets.add(memoOf(book, client).secret);
  }));
  assert.equal(secrets.size, 1);
  assert.equal(memoOf(book, client).keys.length, 2);
});

test('a preview that another tab made stale is not sent', async () => {
  const book = memoryBook();
  const bytes = manifestOf((m) => { again(m); m.changes = 0; }, 'lgrr');
  const [first, second] = [await load({ book }, bytes), await load({ book }, bytes)];
  const sheet = await first.begin(1);
  await sheet.prepare({ way: 'car' });
  await second.answer({ way: 'train' }, 2);
  await assert.rejects(sheet.send(), { type: 'prepared' });
  assert.equal(sheet.body, undefined);
  await sheet.prepare({ way: 'car' });
  await sheet.send();
  assert.deepEqual(memoOf(book, first).keys, ['1']);
});

test('texts have keys of 64 bits, kept exactly', async () => {
  const book = memoryBook();
  const client = await load({ book }, manifestOf(words, 'rappor'));
  await client.answer({ way: 'tea' });
  const [key] = memoOf(book, client).keys;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('tea'));
  assert.equal(BigInt(key), new DataView(digest).getBigUint64(0, true));
});

test('the secret of docs/memo.md gives the streams of docs/memo.md', async () => {
  // rappor's cohort is choice(64) of the first word of the begin stream, 322f2574f3d515e4; the
  // permanent row comes from the stream of the key, which other tests compare with the vectors.
  const bytes = manifestOf(words, 'rappor');
  const secret = Array.from({ length: 32 }, (_, i) => i.toString(16).padStart(2, '0')).join('');
  const draws = { words: '00'.repeat(8 * 17), memos: { 0: { secret, keys: [] } } };
  const book = bookWith(await digestOf(bytes), 1, draws);
  const sheet = await (await load({ book }, bytes)).begin();
  const { reports } = await sheet.prepare({ way: 'tea' });
  assert.equal(parseInt(reports.way.slice(0, 2), 16), Number((0xe415d5f374252f32n * 64n) >> 64n));
});
