// Manifests, answers, sheets and what is sent.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { Client as Strict, DeniableError, mechanism, secureBytes } from '../deniable.js';
import { bookWith, digestOf, manifestOf, memoryBook, readVectors, specOf } from './tools.js';

/** Without a book, unless a test is about it. */
const Client = { load: (source, options) => Strict.load(source, { book: null, ...options }) };

const refused = (type, message = /./) => (error) => {
  assert.ok(error instanceof DeniableError && error instanceof Error, String(error));
  assert.equal(error.name, 'DeniableError');
  assert.equal(error.type, type);
  assert.match(error.message, message);
  return true;
};

const MODULES = ['deniable.js', 'promise.js', 'book.js'];

test('the modules are at most 12,500 bytes, compressed', () => {
  const sources = MODULES.map((name) => readFileSync(new URL(`../${name}`, import.meta.url)));
  const sizes = sources.map((source) => gzipSync(source, { level: 9 }).length);
  assert.ok(sizes.reduce((x, y) => x + y) <= 12_500, `${sizes} bytes`);
});

// ---- manifests

test('a manifest has the digest of its bytes', async () => {
  const bytes = manifestOf();
  const hash = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
  for (const source of [bytes, bytes.buffer, { bytes }]) {
    const client = await Client.load(source, { digest: hash });
    assert.equal(client.digest, hash);
    assert.equal(client.manifest.title, 'A test');
  }
  const other = { digest: '0'.repeat(64) };
  await assert.rejects(Client.load(bytes, other), refused('other-collection', new RegExp(hash)));
});

const badManifests = {
  'another version': [(m) => { m.deniable = 2; }, /deniable/],
  'a version that is true': [(m) => { m.deniable = true; }, /deniable/],
  'a missing key': [(m) => { delete m.about; }, /about/],
  'an unknown key': [(m) => { m.clock = 1; }, /clock/],
  'no questions': [(m) => { m.questions = []; }, /questions/],
  'too many questions': [(m, q) => { m.questions = Array(257).fill(q); }, /questions/],
  'a question that is null': [(m) => { m.questions = [null]; }, /questions/],
  'a question that is a number': [(m) => { m.questions = [5]; }, /mechanism/],
  'a name twice': [(m, q) => m.questions.push(q), /questions/],
  'a bad epsilon': [(m) => { m.epsilon = 0; }, /epsilon/],
  'an epsilon that is text': [(m) => { m.epsilon = '1'; }, /epsilon/],
  'another way to divide': [(m) => { m.divide = 'auction'; }, /divide/],
  'no rounds': [(m) => { m.rounds = 0; }, /rounds/],
  'half a round': [(m) => { m.rounds = 1.5; }, /rounds/],
  'too many rounds': [(m) => { m.rounds = 65536; }, /rounds/],
  'changes without rounds': [(m) => { m.changes = 1; }, /changes/],
  'a sample in several rounds': [(m) => { m.rounds = 2; m.divide = 'sampled'; }, /divide/],
  'another kind': [(m, q) => { q.kind = 'essay'; }, /kind/],
  'an inherited kind': [(m, q) => { q.kind = 'constructor'; }, /kind/],
  'a kind in a list': [(m, q) => { q.kind = ['choice']; }, /kind/],
  'a bad name': [(m, q) => { q.name = 'Way'; }, /"name"/],
  'edges of a choice': [(m, q) => { q.edges = [1]; }, /edges/],
  'a number without edges': [(m, q) => { q.kind = 'number'; }, /edges/],
  'edges that descend': [(m, q) => { q.kind = 'number'; q.edges = [2, 1]; }, /edges/],
  'edges that are text': [(m, q) => { q.kind = 'number'; q.edges = ['1', '2']; }, /edges/],
  'too few edges': [(m, q) => { q.kind = 'number'; q.edges = [1]; }, /"mechanism"/],
  'yes or no or other': [(m, q) => { q.kind = 'yes/no'; }, /"mechanism"/],
  'any text for grr': [(m, q) => { q.mechanism.domain = { text: true }; }, /domain/],
  'another mechanism': [(m, q) => { q.mechanism.mechanism = 'magic'; }, /magic/],
  'an inherited mechanism': [(m, q) => { q.mechanism.mechanism = 'constructor'; }, /constructor/],
  'a mechanism in a list': [(m, q) => { q.mechanism.mechanism = ['grr']; }, /mechanism/],
  'no spec': [(m, q) => { q.mechanism = null; }, /mechanism/],
  'another version of the spec': [(m, q) => { q.mechanism.deniable = 2; }, /deniable/],
  'an unknown key in the spec': [(m, q) => { q.mechanism.extra = 2; }, /extra/],
  'no thresholds': [(m, q) => { q.mechanism.thresholds = {}; }, /keep/],
  'thresholds that are null': [(m, q) => { q.mechanism.thresholds = null; }, /thresholds/],
  'a threshold that is a number': [(m, q) => { q.mechanism.thresholds.keep = 5; }, /keep/],
  'a threshold with a point': [(m, q) => { q.mechanism.thresholds.keep = '5.0'; }, /keep/],
  'a threshold of 0': [(m, q) => { q.mechanism.thresholds.keep = '0'; }, /keep/],
  'a threshold in hexadecimal': [(m, q) => { q.mechanism.thresholds.keep = '0x5'; }, /keep/],
  'a threshold of 2^64': [(m, q) => { q.mechanism.thresholds.keep = String(2n ** 64n); }, /keep/],
  'an unknown threshold': [(m, q) => { q.mechanism.thresholds.zero = '5'; }, /zero/],
  'an unknown design': [(m, q) => { q.mechanism.design = { g: 4 }; }, /"g"/],
  'no domain': [(m, q) => { q.mechanism.domain = null; }, /domain/],
  'one label': [(m, q) => { q.mechanism.domain = { labels: ['a'] }; }, /domain/],
  'labels that are no list': [(m, q) => { q.mechanism.domain = { labels: 'abc' }; }, /domain/],
  'a label that is null': [(m, q) => { q.mechanism.domain = { labels: ['a', null] }; }, /domain/],
  'an other that is no label': [(m, q) => { q.mechanism.domain.other = 'x'; }, /domain/],
  'a choice without labels': [(m, q) => { q.mechanism.domain = { size: 3 }; }, /"mechanism"/],
};

/** The labels of a domain, changed. */
const labelled = (labels, more = {}) => (m, q) => { q.mechanism.domain = { labels, ...more }; };
/** A number with these edges and labels. */
const binned = (edges, labels) => (m, q) => {
  Object.assign(q, { kind: 'number', edges });
  q.mechanism.domain = { labels };
};

Object.assign(badManifests, {
  'a key that all objects have': [(m) => { m.toString = 1; }, /toString/],
  'the constructor': [(m, q) => { q.mechanism.design.constructor = 1; }, /constructor/],
  'equal labels': [labelled(['a', 'a', 'b']), /domain/],
  'labels that read alike': [labelled(['7', 7]), /domain/],
  'labels that are one in Python': [labelled([1, true]), /domain/],
  'a domain of two sorts': [labelled(['a', 'b'], { size: 2 }), /domain/],
  'bins of other edges': [binned([5], ['below 6', '6 or more']), /"mechanism"/],
  'bins with other words': [binned([5], ['low', 'high']), /"mechanism"/],
  'bins the wrong way': [binned([5], ['5 or more', 'below 5']), /"mechanism"/],
  'bins in one label': [binned([5, 6], ['below 5,5 to 6', '6 or more']), /"mechanism"/],
  'a name in a list': [(m, q) => { q.name = ['way']; }, /"name"/],
  'too small an epsilon': [(m) => { m.epsilon = 1e-7; }, /epsilon/],
});

for (const [name, [change, message]] of Object.entries(badManifests)) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(Client.load(manifestOf(change)), refused('bad-manifest', message));
  });
}

const k = 3; // manifestOf
const outside = {
  the: { theta: [511, 1025] }, ss: { omega: [0, k, k + 1] },
  olh: { g: [1, 65537], modulus: [0, k - 1, 9, 2 ** 31] }, blh: { g: [1, 3] },
  hr: { block: [0, 1, 6, 2 ** 32], seed: [-2, 2 ** 32] }, shist: { b: [2, 6, 512], seed: [-2] },
  she: { steps: [0, 17], reach: [-1, 128] },
  cms: { cohorts: [0, 65537], width: [1, 65537], seed: [-1, 2 ** 32] },
  orappor: { hashes: [0, 17], permuted: [-1, 2] }, dbitflip: { w: [0, k + 1] },
};

for (const [name, design] of Object.entries(outside)) {
  test(`every integer of the design of ${name} has its range`, async () => {
    const few = { ss: { omega: 1 }, dbitflip: { w: k }, she: { reach: 4 } }[name] ?? {};
    const having = (more) => (m, q) => void Object.assign(q.mechanism.design, few, more);
    await Client.load(manifestOf(having({}), name));
    for (const [integer, values] of Object.entries(design)) {
      for (const value of [...values, 2.5, String(values[0]), null]) {
        const manifest = manifestOf(having({ [integer]: value }), name);
        await assert.rejects(Client.load(manifest), refused('bad-manifest', RegExp(`"(${integer}|g)"`)));
      }
    }
  });
}

test('bins are named as in Python', async () => {
  const python = {
    'below 1e-05,1e-05 to 0.0001,0.0001 to 0.333333333333,0.333333333333 or more': [1e-5, 1e-4, 1 / 3],
    'below -1.5e+300,-1.5e+300 to 999999999999,999999999999 to 1e+12,1e+12 or more':
      [-1.5e300, 999999999999, 1e12],
    'below 9.00719925474e+15,9.00719925474e+15 or more': [2 ** 53],
  };
  for (const [labels, edges] of Object.entries(python)) {
    await Client.load(manifestOf(binned(edges, labels.split(','))));
  }
});

test('whatever is wrong with a manifest is a bad manifest', async () => {
  const text = new TextDecoder().decode(manifestOf());
  const texts = [text.replace('{', '{"__proto__":1,'), `\ufeff${text}`, '[]', '"text"', 'null',
    text.replace(/"domain":{[^}]*}/, '"domain":{"size":2147483647}')];
  for (const other of texts) {
    const bytes = new TextEncoder().encode(other);
    await assert.rejects(Client.load(bytes), refused('bad-manifest'));
  }
});

test('bytes that are no JSON are refused', async () => {
  for (const bytes of [[], [0x7b], [0xff], [0x22, 0xff, 0x22], [0x35], [0x6e, 0x75, 0x6c, 0x6c]]) {
    await assert.rejects(Client.load(Uint8Array.from(bytes)), refused('bad-manifest'));
  }
});

test('a manifest that breaks its epsilon is refused by every program', async () => {
  const promise = (change) => [change, 'broken-promise'];
  const cases = [
    promise((m) => { m.epsilon = 0.1; }),
    promise((m) => { m.rounds = 60; }),
    promise((m, q) => { q.mechanism.epsilon = 0.1; }),
    promise((m, q) => { q.mechanism.thresholds.keep = String(2n ** 64n - 1n); }),
    [() => {}, undefined],
  ];
  for (const [change, type] of cases) {
    const loading = Client.load(manifestOf(change), { maxEpsilon: 32 });
    assert.equal(await loading.then(() => undefined, (error) => error.type), type);
  }
  await assert.rejects(mechanism({ ...specOf('oue'), epsilon: 0.5 }), refused('broken-promise'));
});

/** For three answers, from Python. */
const honestChain = {
  epsilon_inf: 2, epsilon_1: 1,
  thresholds: { permanent_keep: '12552623127150127847', keep: '9872234754531039705' },
};

test('a remembered answer costs all reports of each key, not one', async () => {
  // lgrr: epsilon_inf 2 and epsilon_1 1; three answers, so that no more than three keys count.
  const spent = { 0: 2, 1: 4, 2: 6, 3: 6, 8: 6 };
  for (const [changes, epsilon] of Object.entries(spent)) {
    for (const [more, type] of [[1e-6, undefined], [-1e-6, 'broken-promise']]) {
      const numbers = { rounds: 9, changes: Number(changes), epsilon: epsilon + more };
      const bytes = manifestOf((m, q) => {
        Object.assign(m, numbers);
        Object.assign(q.mechanism, honestChain);
      }, 'lgrr');
      const loading = Client.load(bytes, { book: memoryBook() });
      assert.equal(await loading.then(() => undefined, (error) => error.type), type, [changes, more]);
    }
  }
});

test('hashed and coarse answers are not remembered with changes', async () => {
  for (const name of ['lblh', 'lolh', 'dbitflippm']) {
    for (const [changes, type] of [[0, undefined], [1, 'broken-promise']]) {
      const bytes = manifestOf((m, q) => {
        Object.assign(m, { rounds: 2, changes, epsilon: 32 });
        if (name === 'dbitflippm') q.mechanism.design.w = 3;
      }, name);
      const loading = Client.load(bytes, { book: memoryBook(), maxEpsilon: 32 });
      assert.equal(await loading.then(() => undefined, (error) => error.type), type, name);
    }
  }
});

test('more than maxEpsilon is refused; it is 8 unless a program says otherwise', async () => {
  const having = (epsilon) => manifestOf((m) => { m.epsilon = epsilon; });
  await Client.load(having(8));
  await assert.rejects(Client.load(having(8.01)), refused('too-much', /8\.01.*8/));
  await Client.load(having(32), { maxEpsilon: 32 });
  for (const maxEpsilon of [4, 0, NaN, null, 'much']) {
    await assert.rejects(Client.load(having(4.5), { maxEpsilon }), refused('too-much'));
  }
});

test('brr is for two answers', async () => {
  const three = manifestOf(undefined, 'brr');
  await assert.rejects(Client.load(three), refused('bad-manifest', /mechanism/));
});

// ---- answers

const kinds = JSON.stringify(JSON.parse(readVectors('wire.json')[0].manifest));
const good = { way: 'car', ever: true, hours: 5, word: 'tea' };

test('bad answers are refused before any coin is drawn, and not repeated', async () => {
  const book = memoryBook();
  const client = await Client.load(new TextEncoder().encode(kinds), { book });
  const bad = {
    way: [null, undefined, 1.5, NaN, {}, ['car'], '\ud800'],
    ever: ['maybe', 'true', 1, 0, null, undefined],
    hours: [NaN, Infinity, '5', true, null, 5n],
    word: [5, null, true, '\ud800', 'a\udc00b', ['tea']],
  };
  for (const [name, answers] of Object.entries(bad)) {
    for (const answer of answers) {
      const sheet = await client.begin();
      await assert.rejects(sheet.prepare({ ...good, [name]: answer }),
        refused('bad-answer', new RegExp(`"${name}" must be (one of|a finite|well-formed)`)));
    }
    const { [name]: _, ...rest } = good;
    const sheet = await client.begin();
    await assert.rejects(sheet.prepare(rest), refused('bad-answer', new RegExp(name)));
  }
  const sheet = await client.begin();
  await assert.rejects(sheet.prepare({ ...good, ever: 'a secret' }), (error) => {
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
  assert.deepEqual(book.entries[''][client.digest].rounds, { 1: { words: '' } });
});

/** The index that an answer becomes: with coins of zeros grr reports it as it is. */
async function indexOf(answer, kind, labels, more = {}, other = {}) {
  const bytes = manifestOf((m, q) => {
    Object.assign(q, { kind, ...more });
    q.mechanism.domain = { labels, ...other };
  });
  const book = bookWith(await digestOf(bytes), 1, { words: '00'.repeat(16) });
  const sheet = await (await Client.load(bytes, { book })).begin();
  return parseInt((await sheet.prepare({ way: answer })).reports.way, 16);
}

test('answers become the index of their value', async () => {
  const edges = [-0.5, 5, 7.25];
  const numbers = [[-1e300, 0], [-0.5, 1], [0, 1], [4.99, 1], [5, 2], [7, 2], [7.25, 3], [8, 3]];
  for (const [answer, index] of numbers) {
    const labels = ['below -0.5', '-0.5 to 5', '5 to 7.25', '7.25 or more'];
    assert.equal(await indexOf(answer, 'number', labels, { edges }), index);
  }
  for (const [answer, index] of [[true, 0], ['yes', 0], [false, 1], ['no', 1]]) {
    assert.equal(await indexOf(answer, 'yes/no', ['yes', 'no']), index);
  }
  const ways = ['car', 'other', 'train'];
  for (const [answer, index] of [['car', 0], ['train', 2], ['rocket', 1], [7, 1], [true, 1]]) {
    assert.equal(await indexOf(answer, 'choice', ways, {}, { other: 'other' }), index);
  }
});

test('labels may be integers and booleans, and are not confused with text', async () => {
  const change = (m, q) => { q.mechanism.domain.labels = [7, true, 'true']; };
  const client = await Client.load(manifestOf(change));
  const sheet = await client.begin();
  for (const answer of [7, true, 'true']) await sheet.prepare({ way: answer });
  for (const answer of ['7', 1, false, 'True', 2]) {
    await assert.rejects(sheet.prepare({ way: answer }), refused('bad-answer', /one of/));
  }
});

test('a boolean label is hashed as Python spells it, a text as it is', async () => {
  const spec = { ...specOf('cms'), domain: { labels: [true, false, 'true', 7] } };
  const texts = { ...spec, domain: { labels: ['True', 'False', 'true', '7'] } };
  const [m, same] = [await mechanism(spec), await mechanism(texts)];
  for (let value = 0; value < 4; value++) {
    const bytes = secureBytes(8 * m.coinWords);
    assert.deepEqual(m.report(value, bytes), same.report(value, bytes));
  }
});

test('an index that is none is refused', async () => {
  const m = await mechanism(specOf('grr'));
  for (const value of [-1, 10, 0.5, '0', 0n, NaN, undefined]) {
    assert.throws(() => m.report(value, secureBytes(16)), refused('bad-answer'));
  }
});

// ---- sheets

test('a round is one of the manifest', async () => {
  const client = await Client.load(manifestOf((m) => { m.rounds = 3; }));
  for (const round of [1, 2, 3]) await client.begin(round);
  for (const round of [0, 4, 1.5, '1', null]) {
    await assert.rejects(client.begin(round), refused('bad-round', /1\.\.3/));
  }
});

test('coins are drawn once for a sheet: the same answer shows the same report', async () => {
  const client = await Client.load(manifestOf(), { to: 'https://example.org/x' });
  const sheet = await client.begin();
  await assert.rejects(sheet.send(), refused('prepared'));
  const [first, second] = await Promise.all([0, 1].map(() => sheet.prepare({ way: 'car' })));
  assert.deepEqual(first, second);
  const { digest: collection } = client;
  const { id: own, reports } = first;
  assert.equal(first.body, JSON.stringify({ collection, id: own, reports, round: 1 }));
  assert.match(`${own} ${reports.way}`, /^[0-9a-f]{32} 0[012]$/);
  assert.equal((await sheet.prepare({ way: 'train' })).id, own);
  assert.equal((await sheet.prepare({ way: 'car' })).body, first.body);
  const { id } = await (await client.begin()).prepare({ way: 'car' });
  assert.notEqual(id, own);
});

test('another answer uses the same coins', async () => {
  // With these, oue reports its own bit always and others never.
  const bytes = manifestOf(() => {}, 'oue');
  const { one, zero } = specOf('oue').thresholds;
  const between = ((BigInt(one) + BigInt(zero)) / 2n).toString(16).padStart(16, '0');
  const words = between.match(/../g).reverse().join('').repeat(3);
  const book = bookWith(await digestOf(bytes), 1, { words });
  const sheet = await (await Client.load(bytes, { book })).begin();
  for (const [way, row] of [['car', '01'], ['train', '02'], ['other', '04'], ['car', '01']]) {
    assert.equal((await sheet.prepare({ way })).reports.way, row);
  }
});

test('only the drawn question needs an answer', async () => {
  const manifest = readVectors('wire.json')[1].manifest;
  const client = await Client.load(new TextEncoder().encode(manifest));
  const sheet = await client.begin();
  assert.equal(sheet.questions.length, 1);
  const [{ name }] = sheet.questions;
  const { reports } = await sheet.prepare({ [name]: good[name] });
  assert.deepEqual(Object.keys(reports), [name]);
});

// ---- sending

test('who loads from bytes must say where to send', async () => {
  const client = await Client.load(manifestOf(), { fetch: () => assert.fail('fetched') });
  await assert.rejects(client.answer({ way: 'car' }), refused('no-answer', /where/));
});

/** A server that gives these answers; a null is no answer. */
function server(...answers) {
  const requests = [];
  const fetch = async (url, request) => {
    requests.push({ url: String(url), ...request });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer === null) throw new TypeError('fetch failed');
    const [status, problem, headers] = [answer].flat();
    return new Response(problem && JSON.stringify(problem), { status, headers });
  };
  return { fetch, requests };
}

async function send(answers, options = {}) {
  const { fetch, requests } = server(...answers);
  const to = 'https://example.org/v1/submissions';
  const client = await Client.load(manifestOf(), { fetch, to, pause: 1, ...options });
  return { requests, sent: client.answer({ way: 'car' }) };
}

test('a submission is counted once', async () => {
  const { sent, requests } = await send([201]);
  assert.deepEqual(await sent, { counted: true });
  assert.equal(requests.length, 1);
  const [{ url, method, headers, body, cache, credentials, referrerPolicy }] = requests;
  assert.equal(cache, 'no-store');
  assert.equal(url, 'https://example.org/v1/submissions');
  assert.deepEqual([method, credentials, referrerPolicy], ['POST', 'omit', 'no-referrer']);
  assert.deepEqual(headers, { 'Content-Type': 'application/json' });
  assert.deepEqual(Object.keys(JSON.parse(body)), ['collection', 'id', 'reports', 'round']);
  assert.deepEqual(await (await send([200])).sent, { counted: false });
});

test('a key is sent if there is one', async () => {
  const { sent, requests } = await send([201], { key: 'open sesame' });
  await sent;
  assert.equal(requests[0].headers.Authorization, 'Bearer open sesame');
});

test('what may pass: the same bytes again', async () => {
  const passing = [null, 408, 429, 500, 502, 503, 504];
  const { sent, requests } = await send([...passing, 200], { tries: 8 });
  assert.deepEqual(await sent, { counted: false });
  assert.equal(requests.length, 8);
  assert.equal(new Set(requests.map(({ body }) => body)).size, 1);
});

test('there is a limit, and the pause doubles', async () => {
  const start = performance.now();
  const { sent, requests } = await send([null], { tries: 4, pause: 10 });
  await assert.rejects(sent, refused('no-answer'));
  assert.equal(requests.length, 4);
  assert.ok(performance.now() - start >= 65); // 10 + 20 + 40, less what timers may be early
  const busy = { type: 'urn:deniable:busy', detail: 'later' };
  await assert.rejects((await send([[429, busy]], { tries: 2 })).sent, refused('busy', /later/));
});

test('Retry-After is obeyed, and too long a wait is an error', async () => {
  const start = performance.now();
  const { sent } = await send([[429, null, { 'retry-after': '1' }], 201]);
  await sent;
  assert.ok(performance.now() - start >= 990);
  const { sent: never, requests } = await send([[503, null, { 'retry-after': '3600' }]]);
  await assert.rejects(never, refused('unexpected'));
  assert.equal(requests.length, 1);
});

test('other statuses are errors, at once', async () => {
  const problems = [
    [400, 'malformed'], [401, 'no-key'], [409, 'id-used'], [409, 'other-collection'],
    [413, 'too-large'], [415, 'media-type'], [422, 'impossible-report'],
  ];
  for (const [status, word] of problems) {
    const problem = { type: `urn:deniable:${word}`, detail: `why ${word}`, status };
    const { sent, requests } = await send([[status, problem], 201]);
    await assert.rejects(sent, refused(word, new RegExp(`why ${word}`)));
    assert.equal(requests.length, 1);
  }
  for (const answer of [501, 404, 302, [500, 'text'], [500, 5], [418, { type: 7 }]]) {
    const { sent } = await send([answer], { tries: 1 });
    await assert.rejects(sent, (error) => error instanceof DeniableError);
  }
});

test('a failed sheet can be sent again, with the same bytes', async () => {
  const { fetch, requests } = server(null, null, 201);
  const to = 'https://example.org/x';
  const client = await Client.load(manifestOf(), { fetch, to, pause: 1, tries: 2 });
  const sheet = await client.begin();
  await sheet.prepare({ way: 'car' });
  await assert.rejects(sheet.send(), refused('no-answer'));
  assert.deepEqual(await sheet.send(), { counted: true });
  assert.equal(new Set(requests.map(({ body }) => body)).size, 1);
});

test('who answers in one go gets the sheet with the error, and sends the same bytes', async () => {
  const { sent, requests } = await send([null, null, 200], { tries: 2 });
  const error = await sent.catch((found) => found);
  refused('no-answer')(error);
  assert.deepEqual(await error.sheet.send(), { counted: false });
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map(({ body }) => body)).size, 1);
});

const problem = (type, detail) => ({ type, detail });

test('a server cannot speak for the client, nor break it', async () => {
  const own = ['bad-manifest', 'bad-answer', 'bad-round', 'broken-promise', 'too-much', 'changed',
    'answered', 'prepared', 'memo', 'coins', 'no-answer'];
  const said = [...own.map((word) => `urn:deniable:${word}`), ...own, null, 7, [], {}, { toString: 1 },
    '', 'Busy!', 'x'.repeat(41), 'urn:deniable:<b>'];
  for (const type of said) {
    await assert.rejects((await send([[422, problem(type, 'no')]])).sent, refused('unexpected', /^no$/));
  }
  for (const detail of [undefined, null, 7, [], { toString: 1 }, { valueOf: 1 }]) {
    const answered = refused('id-used', /^the collector answered 409$/);
    await assert.rejects((await send([[409, problem('urn:deniable:id-used', detail)]])).sent, answered);
  }
  const long = `\u001b[2J\u202e${'x'.repeat(1e6)}`;
  const plain = refused('id-used', /^\?\[2J\?x{295}$/);
  await assert.rejects((await send([[409, problem('urn:deniable:id-used', long)]])).sent, plain);
});

test('a redirect is no receipt', async () => {
  const { sent, requests } = await send([[302, undefined, { location: '/answer' }], 200]);
  await assert.rejects(sent, refused('unexpected', /302/));
  assert.deepEqual(requests.map(({ redirect }) => redirect), ['manual']);
});

test('an answer that does not end is none', async (t) => {
  const real = AbortSignal.timeout.bind(AbortSignal);
  const waited = [];
  t.mock.method(AbortSignal, 'timeout', (ms) => real(waited.push(ms)));
  // Headers that never come; then a body that stops in the middle.
  const hanging = (url, { signal }) => new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  const stops = async (url, { signal }) => new Response(new ReadableStream({
    start(body) {
      body.enqueue(new Uint8Array(9));
      signal.addEventListener('abort', () => body.error(signal.reason));
    },
  }));
  const alive = setInterval(() => {}, 1000); // those timers do not keep Node awake
  const to = 'https://example.org/v1/submissions';
  const client = await Client.load(manifestOf(), { fetch: hanging, to, pause: 1, tries: 3 });
  await assert.rejects(client.answer({ way: 'car' }), refused('no-answer'));
  for (const fetch of [hanging, stops]) {
    await assert.rejects(Client.load('https://example.org/v1/manifest', { fetch }), refused('no-answer'));
  }
  clearInterval(alive);
  assert.deepEqual(waited, Array(5).fill(30_000));
});

test('a manifest is at most 16 MiB', async () => {
  const long = manifestOf((m) => { m.about = 'x'.repeat(2 ** 24); });
  await assert.rejects(Client.load(long), refused('bad-manifest', /16 MiB/));
});

test('a client is loaded from a URL, and sends to its server', async () => {
  const requests = [];
  const fetch = async (url, request) => {
    const { cache, credentials, referrerPolicy } = request;
    const alone = ['no-store', 'omit', 'no-referrer'];
    assert.deepEqual([cache, credentials, referrerPolicy], alone);
    requests.push([String(url), request.method]);
    return request.method ? new Response(null, { status: 201 }) : new Response(manifestOf());
  };
  const address = 'https://example.org/some/v1/manifest';
  for (const url of [address, new URL(address)]) {
    const client = await Client.load(url, { fetch });
    assert.deepEqual(await client.answer({ way: 'train' }), { counted: true });
  }
  const there = ['https://example.org/some/v1/submissions', 'POST'];
  assert.deepEqual(requests.slice(0, 2), [[address, undefined], there]);
  const { fetch: none } = server(404);
  await assert.rejects(Client.load(address, { fetch: none }), refused('unexpected'));
  const { fetch: silent } = server(null);
  await assert.rejects(Client.load(address, { fetch: silent }), refused('no-answer'));
});
