// Devices that remember.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Client, DeniableError } from '../deniable.js';
import { givenBytes, manifestOf, memory } from './tools.js';

const again = (m) => Object.assign(m, { rounds: 9, changes: 1 });

/** Coins that are below every threshold: `instant` of lgrr then reports what is kept. */
const low = (count) => new Uint8Array(count);

const load = (options, mechanism = 'lgrr') => Client.load(manifestOf(again, mechanism), options);
const place = ({ digest }) => `deniable:${digest}:way`;
const report = async (client, way, round = 1) =>
  (await client.begin(round).prepare({ way })).reports.way;

/** Whose instant step changes nothing, so that reports show what is kept; secrets are random. */
const plainly = (count) => (count === 32 ? crypto.getRandomValues(new Uint8Array(32)) : low(count));

test('the same key has the same permanent answer for ever', async () => {
  const kept = new Set();
  for (let device = 0; device < 40; device++) {
    const memo = memory();
    const seen = new Set();
    for (let round = 1; round <= 3; round++) {
      // A new client each time: only the memo remembers.
      const client = await load({ memo, random: plainly });
      seen.add(await report(client, 'train', round));
    }
    assert.equal(seen.size, 1);
    kept.add([...seen][0]);
  }
  // And it is drawn: an answer is kept with at most 0.6 here, so that 40 devices are all alike with
  // a probability of at most 3 * 0.6^40 < 1e-8.
  assert.ok(kept.size > 1);
});

test('the record: secret, keys and budget', async () => {
  const memo = memory();
  const client = await load({ memo });
  await report(client, 'train');
  assert.deepEqual([...memo.map.keys()], [place(client)]);
  const record = JSON.parse(memo.getItem(place(client)));
  assert.deepEqual(Object.keys(record), ['secret', 'keys', 'most']);
  assert.match(record.secret, /^[0-9a-f]{64}$/);
  assert.deepEqual([record.keys, record.most], [['1'], 2]);
  await report(client, 'car', 2);
  const { secret, keys } = JSON.parse(memo.getItem(place(client)));
  assert.deepEqual([secret, keys], [record.secret, ['0', '1']]);
});

test('no more keys than the budget: then a key in use is reported', async () => {
  const memo = memory();
  const client = await load({ memo, random: plainly });
  const car = await report(client, 'car');
  const train = await report(client, 'train');
  const before = memo.getItem(place(client));
  assert.equal(await report(client, 'other'), car); // the low word chooses the first key
  const random = (count) => low(count).fill(255, 0, 8); // a high word chooses the last
  const last = await load({ memo, random });
  assert.equal(await report(last, 'other'), train);
  assert.equal(await report(last, 'car'), car);
  assert.equal(memo.getItem(place(client)), before);
});

test('a submission eats as many coins whatever the answer and the memo', async () => {
  const memo = memory();
  const drawn = [];
  const random = (count) => {
    drawn.push(count);
    return plainly(count);
  };
  const client = await load({ memo, random });
  for (const way of ['car', 'train', 'other', 'car']) await report(client, way);
  assert.deepEqual(drawn, [32, 24, 16, 24, 16, 24, 16, 24, 16]); // secret; coins and id each time
});

const storages = {
  'that cannot be written': { getItem: () => null, setItem: () => { throw new Error('full'); } },
  'that cannot be read': { getItem: () => { throw new Error('denied'); }, setItem: () => {} },
  'that keeps nothing': { getItem: () => null, setItem: () => {} },
  'that keeps half': {
    getItem() { return this.text ?? null; },
    setItem(name, text) { this.text = text.slice(1); },
  },
};

for (const [name, memo] of Object.entries(storages)) {
  test(`nothing is made with a storage ${name}`, async () => {
    const drawn = [];
    const fetch = () => assert.fail('something was sent');
    const random = (count) => {
      drawn.push(count);
      return plainly(count);
    };
    const client = await load({ memo, random, fetch, to: 'https://example.org/' });
    await assert.rejects(client.answer({ way: 'car' }), { name: 'DeniableError', type: 'memo' });
    assert.ok(drawn.every((count) => count === 32)); // perhaps a secret, but no coins and no id
  });
}

test('the key is recorded before coins are drawn', async () => {
  const memo = memory();
  const events = [];
  const watched = {
    getItem: memo.getItem,
    setItem: (name, text) => {
      events.push('record');
      memo.setItem(name, text);
    },
  };
  const random = (count) => {
    events.push(count);
    return plainly(count);
  };
  await report(await load({ memo: watched, random }), 'car');
  assert.deepEqual(events, [32, 'record', 24, 16]);
});

test('damaged memos are refused and left alone', async () => {
  const client = await load({ memo: memory() });
  const secret = '00'.repeat(32);
  const damaged = ['', '{', '5', '{}', '[]', JSON.stringify({ secret, keys: ['x'], most: 2 }),
    JSON.stringify({ secret: 'ab', keys: [], most: 2 }),
    JSON.stringify({ secret, keys: ['0', '1', '2'], most: 2 }),
    JSON.stringify({ secret, keys: 'all', most: 2 })];
  for (const text of damaged) {
    const memo = memory({ [place(client)]: text });
    await assert.rejects(report(await load({ memo }), 'car'), { type: 'memo' });
    assert.equal(memo.getItem(place(client)), text);
  }
});

test('without any storage nothing is sent', async () => {
  if (globalThis.localStorage) return;
  await assert.rejects(report(await load({}), 'car'), { type: 'memo' });
});

test('a failed sheet may be prepared again', async () => {
  const memo = memory();
  let full = true;
  const storage = { getItem: memo.getItem, setItem: (...pair) => {
    if (full) throw new Error('full');
    memo.setItem(...pair);
  } };
  const sheet = (await load({ memo: storage })).begin();
  await assert.rejects(sheet.prepare({ way: 'car' }), DeniableError);
  full = false;
  await sheet.prepare({ way: 'train' });
});

test('two at once share one secret and one budget, also in a slow storage', async () => {
  const { map } = memory();
  const later = (result) => new Promise((resolve) => setTimeout(resolve, 2, result));
  const memo = {
    getItem: (name) => later(map.get(name) ?? null),
    setItem: (name, text) => later(map.set(name, text)),
  };
  const secrets = [];
  const random = (count) => {
    if (count === 32) secrets.push(count);
    return plainly(count);
  };
  const client = await load({ memo, random });
  await Promise.all(['car', 'train', 'other', 'car'].map((way) => report(client, way)));
  assert.equal(secrets.length, 1);
  assert.deepEqual(JSON.parse(map.get(place(client))).keys, ['0', '1']);
});

test('locks are used where there are any', async (t) => {
  const asked = [];
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  const locks = { request: async (name, work) => {
    asked.push(name);
    return work();
  } };
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  t.after(() => {
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  });
  const client = await load({ memo: memory() });
  await report(client, 'car');
  assert.deepEqual(asked, [place(client)]);
});

test('a single round needs no memo', async () => {
  const memo = { getItem: () => assert.fail('read'), setItem: () => assert.fail('written') };
  const client = await Client.load(manifestOf(undefined, 'lgrr'), { memo });
  await report(client, 'car');
});

test('texts have keys of 64 bits, kept exactly', async () => {
  const change = (m, q) => {
    again(m);
    q.mechanism.domain = { text: true };
    Object.assign(q, { kind: 'text', candidates: [] });
  };
  const memo = memory();
  const client = await Client.load(manifestOf(change, 'rappor'), { memo, random: plainly });
  const first = await report(client, 'tea');
  const [key] = JSON.parse(memo.getItem(place(client))).keys;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('tea'));
  assert.equal(BigInt(key), new DataView(digest).getBigUint64(0, true));
  assert.equal(await report(client, 'tea'), first);
});

test('the secret of docs/memo.md gives the streams of docs/memo.md', async () => {
  // rappor's cohort is choice(64) of the first word of the begin stream, 322f2574f3d515e4; the
  // permanent row comes from the stream of the key, which other tests compare with the vectors.
  const change = (m, q) => {
    again(m);
    q.mechanism.domain = { text: true };
    Object.assign(q, { kind: 'text', candidates: [] });
  };
  const secret = Uint8Array.from({ length: 32 }, (_, i) => i);
  const random = givenBytes(secret, low(8 * 17), low(16));
  const client = await Client.load(manifestOf(change, 'rappor'), { memo: memory(), random });
  const row = await report(client, 'tea');
  assert.equal(parseInt(row.slice(0, 2), 16), Number((0xe415d5f374252f32n * 64n) >> 64n));
});
