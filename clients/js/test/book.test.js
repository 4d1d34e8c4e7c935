// What a device keeps: draws and submissions, and which collection it answered where.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, secureBytes } from '../deniable.js';
import { manifestOf, memoryBook, readVectors, utf8 } from './tools.js';

const to = 'https://example.org/v2/submissions';
const other = (epsilon = 4) => manifestOf((m) => { m.epsilon = epsilon; });

/** A collector that answers with these statuses, and the bodies that it got. */
function collector(...statuses) {
  const bodies = [];
  const fetch = async (url, { body }) => {
    bodies.push(body);
    return new Response(null, { status: statuses[Math.min(bodies.length, statuses.length) - 1] });
  };
  return { bodies, fetch };
}

const load = (book, { fetch }, bytes = manifestOf(), options = {}) =>
  Client.load(bytes, { book, to, fetch, pause: 1, tries: 1, ...options });

test('whatever the status, only the same bytes are sent again', async () => {
  const statuses = [400, 401, 403, 409, 413, 415, 422, 429, 500, 503, 302, 404];
  const found = collector(...statuses, 201);
  const book = memoryBook();
  for (const [i] of statuses.entries()) {
    // A page that is loaded again each time, and a person who answers something else.
    const client = await load(book, found);
    const sheet = await client.begin();
    if (!i) await sheet.prepare({ way: 'car' });
    else await assert.rejects(sheet.prepare({ way: 'train' }), { type: 'answered' });
    await assert.rejects(sheet.send());
    assert.equal(found.bodies.length, i + 1);
    await assert.rejects(client.answer({ way: 'other' }), (error) => {
      assert.equal(error.type, 'answered');
      assert.equal(error.sheet.body, found.bodies[0]);
      return true;
    });
  }
  const sheet = await (await load(book, found)).begin();
  assert.deepEqual(sheet.questions, []);
  assert.deepEqual(await sheet.send(), { counted: true });
  assert.equal(new Set(found.bodies).size, 1);
});

test('what is sent is in the book before, and then its coins are not', async () => {
  const book = memoryBook();
  const own = () => book.pages[client.digest].rounds;
  const fetch = async (url, { body }) => {
    assert.deepEqual(own(), { 1: { body } });
    return new Response(null, { status: 201 });
  };
  const client = await load(book, { fetch });
  const sheet = await client.begin();
  await sheet.prepare({ way: 'car' });
  assert.deepEqual(Object.keys(own()[1]), ['places', 'words', 'id']);
  await sheet.send();
});

test('a page that is loaded again shows the same', async () => {
  const book = memoryBook();
  const bytes = utf8(readVectors('wire/sampled.json').manifest);
  const all = { way: 'car', ever: true, hours: 5, height: 1.7, word: 'tea' };
  const seen = new Set();
  for (let time = 0; time < 20; time++) {
    const sheet = await (await load(book, collector(201), bytes)).begin();
    seen.add(sheet.questions[0].name + (await sheet.prepare(all)).body);
  }
  assert.equal(seen.size, 1);
});

test('two sheets of one round are one', async () => {
  const found = collector(201, 200);
  const client = await load(memoryBook(), found);
  const sheets = [await client.begin(), await client.begin()];
  const bodies = new Set();
  for (const sheet of sheets) bodies.add((await sheet.prepare({ way: 'car' })).body);
  for (const sheet of sheets) await sheet.send();
  assert.deepEqual([...bodies], [found.bodies[0]]);
  assert.equal(found.bodies[1], found.bodies[0]);
});

test('of two sheets with other answers one is sent', async () => {
  const found = collector(201);
  const book = memoryBook();
  const client = await load(book, found);
  const [first, second] = [await client.begin(), await client.begin()];
  // Coins of zeros: grr reports the answer.
  Object.assign(book.pages[client.digest].rounds[1], { words: '00'.repeat(16) });
  const { body } = await first.prepare({ way: 'car' });
  assert.notEqual((await second.prepare({ way: 'train' })).body, body);
  await first.send();
  await assert.rejects(second.send(), { type: 'answered' });
  assert.deepEqual(found.bodies, [body]);
});

test('rounds are answered one by one', async () => {
  const found = collector(201);
  const client = await load(memoryBook(), found, manifestOf((m) => { m.rounds = 2; m.epsilon = 8; }));
  await client.answer({ way: 'car' }, 1);
  await client.answer({ way: 'car' }, 2);
  await assert.rejects(client.answer({ way: 'car' }, 2), { type: 'answered' });
  assert.equal(new Set(found.bodies).size, 2);
});

test('another collection at the same address needs a yes, and names what was spent', async () => {
  const book = memoryBook();
  const found = collector(201);
  await (await load(book, found)).begin(); // only looked at
  await (await load(book, found, other())).answer({ way: 'car' });
  const client = await load(book, found);
  for (const work of [() => client.begin(), () => client.answer({ way: 'car' })]) {
    await assert.rejects(work, (error) => {
      assert.deepEqual([error.type, error.digest, error.spent], ['changed', client.digest, 4]);
      return true;
    });
  }
  // A yes to something else is no yes.
  const wrong = await load(book, found, manifestOf(), { another: '0'.repeat(64) });
  await assert.rejects(wrong.begin(), { type: 'changed' });
  assert.equal(found.bodies.length, 1);
  const agreed = await load(book, found, manifestOf(), { another: client.digest });
  await agreed.answer({ way: 'car' });
  // From now on both are known; a third is not, and both were spent.
  await (await load(book, found)).begin();
  await (await load(book, found, other())).begin();
  const third = await load(book, found, other(4.5));
  await assert.rejects(third.begin(), { type: 'changed', spent: 12 });
});

test('a browser without storage is refused: no book is none that was declined', async (t) => {
  const denied = () => { throw new DOMException('denied', 'SecurityError'); };
  for (const none of [{ value: undefined }, { value: null }, { get: denied }]) {
    Object.defineProperty(globalThis, 'indexedDB', { ...none, configurable: true });
    t.after(() => delete globalThis.indexedDB);
    const begun = async () => (await Client.load(manifestOf(), { to })).begin();
    await assert.rejects(begun, { type: 'memo' });
  }
});

test('another collection elsewhere is no change', async () => {
  const book = memoryBook();
  const found = collector(201);
  await (await load(book, found)).answer({ way: 'car' });
  const places = ['https://example.org/two/v2/submissions', 'https://example.com/v2/submissions'];
  for (const [i, place] of places.entries()) {
    await (await load(book, found, other(4 + i), { to: place })).answer({ way: 'car' });
  }
});

/** The same collector under other names. */
const elsewhere = ['https://example.org/v3/submissions', 'https://example.org//v2/submissions',
  'https://www.example.org/v2/submissions', 'http://example.org:8080/v2/submissions'];

test('one submission for each round, at whatever address', async () => {
  const book = memoryBook();
  const found = collector(500, 201);
  await assert.rejects((await load(book, found)).answer({ way: 'car' }));
  for (const place of elsewhere) {
    const client = await load(book, found, manifestOf(), { to: place });
    await assert.rejects(client.answer({ way: 'train' }), { type: 'answered' });
    const sheet = await client.begin();
    assert.deepEqual([sheet.questions, sheet.body], [[], found.bodies[0]]);
    await sheet.send();
    // Where the same was sent again, another collection is another budget.
    await assert.rejects((await load(book, found, other(), { to: place })).begin(), { type: 'changed', spent: 8 });
  }
  assert.equal(new Set(found.bodies).size, 1);
});

test('of two sheets at two addresses one is sent, from the same coins', async () => {
  const book = memoryBook();
  const found = collector(201);
  const sheets = [];
  for (const place of [to, ...elsewhere]) {
    sheets.push(await (await load(book, found, manifestOf(), { to: place })).begin());
  }
  const bodies = new Set();
  for (const sheet of sheets) bodies.add((await sheet.prepare({ way: 'car' })).body);
  assert.equal(bodies.size, 1);
  const { digest } = await load(book, found);
  book.pages[digest].rounds[1].words = '00'.repeat(16); // grr then reports the answer
  await sheets[0].prepare({ way: 'car' });
  await sheets[1].prepare({ way: 'train' });
  const ended = await Promise.allSettled([sheets[0].send(), sheets[1].send()]);
  assert.deepEqual(ended.map(({ reason }) => reason?.type), [undefined, 'answered']);
  assert.equal(found.bodies.length, 1);
});

test('a memo is one, at whatever address', async () => {
  const book = memoryBook();
  const found = collector(201);
  const bytes = manifestOf((m) => { m.rounds = 5; m.changes = 1; m.epsilon = 8; }, 'lgrr');
  const secrets = new Set();
  for (const [i, place] of [to, ...elsewhere].entries()) {
    const client = await load(book, found, bytes, { to: place });
    await client.answer({ way: ['car', 'train', 'other'][i % 3] }, i + 1);
    const { secret, keys } = book.pages[client.digest].memos[0];
    secrets.add(secret);
    assert.ok(keys.length <= 2);
  }
  assert.equal(secrets.size, 1);
});

test('nobody answers two steps, at whatever address', async () => {
  const book = memoryBook();
  const found = collector(201);
  const first = await load(book, found);
  await first.answer({ way: 'car' });
  const step = manifestOf((m) => { m.after = { root: first.digest, parent: first.digest, step: 2 }; });
  for (const place of [to, ...elsewhere]) {
    const { digest: another } = await load(book, found, step);
    const client = await load(book, found, step, { to: place, another });
    await assert.rejects(client.begin(), { type: 'answered' });
  }
  assert.equal(found.bodies.length, 1);
});

test('a collection that was answered meanwhile is noticed before anything is sent', async () => {
  const book = memoryBook();
  const found = collector(201);
  const sheet = await (await load(book, found)).begin();
  await sheet.prepare({ way: 'car' });
  await (await load(book, found, other())).answer({ way: 'car' });
  await assert.rejects(sheet.send(), { type: 'changed' });
  assert.equal(found.bodies.length, 1);
});

test('the book belongs to the place where the manifest is', async () => {
  const book = memoryBook();
  const fetch = async (url, { method }) =>
    (method ? new Response(null, { status: 201 }) : new Response(manifestOf()));
  const client = await Client.load('https://example.org/a/v2/manifest?x=1#y', { book, fetch });
  await client.answer({ way: 'car' });
  assert.deepEqual(Object.keys(book.pages[client.digest].at), ['https://example.org/a/v2/']);
});

// ---- coins that are none

let count = 1n;
const dead = {
  'all zeros': (bytes) => bytes.fill(0),
  'one byte': (bytes) => bytes.fill(0xa7),
  'one word': (bytes) => bytes.map((_, i) => [9, 8, 7, 6, 5, 4, 3, 2][i % 8]).forEach((x, i) => { bytes[i] = x; }),
  'the same at every call': (bytes) => bytes.forEach((_, i) => { bytes[i] = (i * i * 31 + i) % 251; }),
  'half of them': (bytes) => bytes.fill(0, bytes.length / 2),
  'an error': () => { throw new Error('no entropy'); },
  'a counter': (bytes) => new BigUint64Array(bytes.buffer).forEach((_, i, words) => { words[i] = count++; }),
  'half of every word': (bytes) => bytes.forEach((_, i) => { if (i % 8 > 3) bytes[i] = 0; }),
  'only small bytes': (bytes) => bytes.forEach((x, i) => { bytes[i] = x & 15; }),
  'only digits': (bytes) => bytes.forEach((x, i) => { bytes[i] = 48 + (x % 10); }),
  'one bit that is always set': (bytes) => bytes.forEach((x, i) => { if (i % 8 === 7) bytes[i] = x | 64; }),
};

for (const [name, fill] of Object.entries(dead)) {
  test(`dead randomness is refused, and nothing is sent: ${name}`, async (t) => {
    const real = crypto.getRandomValues.bind(crypto);
    t.mock.method(crypto, 'getRandomValues', (bytes) => {
      real(bytes);
      fill(bytes);
      return bytes;
    });
    const found = collector(201);
    for (const mechanism of ['grr', 'oue', 'lgrr']) {
      const bytes = manifestOf((m) => { if (mechanism === 'lgrr') m.rounds = 2; }, mechanism);
      const client = await load(memoryBook(), found, bytes);
      await assert.rejects(client.answer({ way: 'car' }), { type: 'coins' });
    }
    assert.throws(() => [secureBytes(32), secureBytes(32)], { type: 'coins' });
    assert.deepEqual(found.bodies, []);
  });
}

test('no option gives coins', async () => {
  const found = collector(201);
  for (const name of ['random', 'coins', 'secureBytes', 'crypto', 'getRandomValues', 'words']) {
    const asked = () => assert.fail('coins were taken from an option');
    const client = await load(memoryBook(), found, manifestOf(), { [name]: asked });
    await client.answer({ way: 'car' });
  }
});
