// Manifests, answers, sheets and what is sent.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { KINDS, MECHANISMS } from '../client/core.js';
import { Client as Strict, DeniableError, mechanism, secureBytes } from '../deniable.js';
import { names } from '../client/ranges.js';
import { bookWith, digestOf, manifestOf, memoryBook, readVectors, specOf, utf8 } from './tools.js';

/** Without a book, unless a test is about it. */
const Client = { load: (source, options) => Strict.load(source, { book: null, ...options }) };

const refused = (type, message = /./) => (error) => {
  assert.ok(error instanceof DeniableError && error instanceof Error, String(error));
  assert.equal(error.name, 'DeniableError');
  assert.equal(error.type, type);
  assert.match(error.message, message);
  return true;
};

const FOLDER = new URL('../client/', import.meta.url);
const MODULES = readdirSync(FOLDER).filter((name) => name.endsWith('.js'));

test('all modules together are at most 24,000 bytes without comments, compressed', () => {
  const bare = (name) => readFileSync(new URL(name, FOLDER), 'utf8').replace(/^ *(\/\/|\/?\*).*\n/gm, '');
  const sizes = MODULES.map((name) => gzipSync(bare(name), { level: 9 }).length);
  assert.ok(sizes.reduce((x, y) => x + y) <= 24_000, `${sizes} bytes`);
});

test('families.json says which module knows what', async () => {
  const families = JSON.parse(readFileSync(new URL('families.json', FOLDER)));
  const all = Object.values(families);
  assert.deepEqual(all.flatMap(({ mechanisms }) => mechanisms).sort(), [...MECHANISMS.keys()].sort());
  for (const [kind, forms] of KINDS) {
    const found = forms.map(({ keys }) => Object.keys(keys).sort());
    assert.deepEqual(all.flatMap(({ kinds }) => kinds[kind] ?? []).sort(), found.sort());
  }
  for (const [name, { mechanisms }] of Object.entries(families)) {
    const source = readFileSync(new URL(`${name}.js`, FOLDER), 'utf8');
    for (const one of mechanisms) assert.match(source, new RegExp(`[{ ]${one}: `), `${name}: ${one}`);
  }
});

// ---- manifests

test('a manifest has the digest of its bytes', async () => {
  const bytes = manifestOf();
  const hash = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
  for (const source of [bytes, bytes.buffer, { bytes }]) {
    const client = await Client.load(source, { digest: hash });
    assert.equal(client.digest, hash);
    assert.equal(client.manifest.epsilon, 8);
  }
  const other = { digest: '0'.repeat(64) };
  await assert.rejects(Client.load(bytes, other), refused('other-collection', new RegExp(hash)));
});

// tests/vectors/v2/bad has many more; these are about messages, and about JavaScript.
const badManifests = {
  'a missing key': [(m) => { delete m.after; }, /after/],
  'an unknown key': [(m) => { m.clock = 1; }, /clock/],
  'a question that is null': [(m) => { m.questions = [null]; }, /questions/],
  'a name twice': [(m, q) => m.questions.push(q), /"names"/],
  'an inherited key': [(m) => { m.toString = 1; }, /toString/],
  'the constructor': [(m, q, p) => { p.design.constructor = 1; }, /keys/],
  'a name in a list': [(m, q) => { q.name = ['way']; }, /"name"/],
  'a kind in a list': [(m, q) => { q.kind = ['choice']; }, /kind/, 'unsupported'],
  'an inherited kind': [(m, q) => { q.kind = 'constructor'; }, /constructor/, 'unsupported'],
  'an inherited mechanism': [(m, q, p) => { p.name = 'constructor'; }, /constructor/, 'unsupported'],
  'a mechanism in a list': [(m, q, p) => { p.name = ['grr']; }, /grr/, 'unsupported'],
  'edges of a choice': [(m, q) => { q.edges = [1]; }, /edges/],
  'a question without keys': [(m) => { m.questions = [{ name: 'way', kind: 'number', optional: false }]; }, /keys of number/],
  'no thresholds': [(m, q, p) => { p.thresholds = {}; }, /keep/],
  'thresholds that are null': [(m, q, p) => { p.thresholds = null; }, /keys/],
  'a threshold in hexadecimal': [(m, q, p) => { p.thresholds.keep = '0x5'; }, /keep/],
  'edges in one number of 12 digits': [(m) => {
    m.questions = [{ name: 'way', kind: 'number', optional: false, edges: [1, 1 + 1e-13] }];
  }, /edges/],
};

for (const [name, [change, message, type = 'bad-manifest']] of Object.entries(badManifests)) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(Client.load(manifestOf(change)), refused(type, message));
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
    const having = (more) => (m, q, p) => void Object.assign(p.design, few, more);
    await Client.load(manifestOf(having({}), name));
    for (const [integer, values] of Object.entries(design)) {
      const cases = [...values.map((value) => [value, 'broken-promise']),
        ...[2.5, String(values[0]), null].map((value) => [value, 'bad-manifest'])];
      for (const [value, type] of cases) {
        const manifest = manifestOf(having({ [integer]: value }), name);
        await assert.rejects(Client.load(manifest), refused(type, RegExp(`"(${integer}|g)"`)));
      }
    }
  });
}

test('ranges are named as in Python', () => {
  const python = {
    'below 1e-05,1e-05 to 0.0001,0.0001 to 0.333333333333,0.333333333333 or more': [1e-5, 1e-4, 1 / 3],
    'below -1.5e+300,-1.5e+300 to 999999999999,999999999999 to 1e+12,1e+12 or more':
      [-1.5e300, 999999999999, 1e12],
    'below 9.00719925474e+15,9.00719925474e+15 or more': [2 ** 53],
    'below 123456789012,123456789012 to 123456789014,123456789014 or more': [123456789012.5, 123456789013.5],
    'below -4.94065645841e-324,-4.94065645841e-324 or more': [-5e-324],
  };
  for (const [labels, edges] of Object.entries(python)) assert.equal(String(names(edges)), labels);
});

test('whatever is wrong with a manifest is a bad manifest', async () => {
  const text = new TextDecoder().decode(manifestOf());
  const texts = [text.replace('{', '{"__proto__":1,'), `\ufeff${text}`, '[]', '"text"', 'null', '5', '['.repeat(1e5),
    text.replace(/"answers":\[[^\]]*\]/, '"size":2147483647')];
  for (const other of texts) await assert.rejects(Client.load(utf8(other)), refused('bad-manifest'));
});

test('bytes that are no JSON are refused', async () => {
  for (const bytes of [[], [0x7b], [0xff], [0x22, 0xff, 0x22], [0x35], [0x6e, 0x75, 0x6c, 0x6c]]) {
    await assert.rejects(Client.load(Uint8Array.from(bytes)), refused('bad-manifest'));
  }
});

test('other versions are unsupported, and the first is named', async () => {
  const having = (version) => manifestOf((m) => { m.deniable = version; });
  await assert.rejects(Client.load(having(1)), refused('unsupported', /0\.1, which was never released/));
  await assert.rejects(Client.load(having(3)), refused('unsupported', /version 3/));
});

test('policies are not known here', async () => {
  const bytes = manifestOf((m, q, p) => {
    delete p.epsilon;
    p.policy = { per_step: 1 };
  });
  await assert.rejects(Client.load(bytes), refused('bad-manifest', /epsilon|policy/));
});

test('a manifest that breaks its epsilon is refused by every program', async () => {
  const promise = (change) => [change, 'broken-promise'];
  const cases = [
    promise((m) => { m.epsilon = 0.1; }),
    promise((m) => { m.rounds = 60; }),
    promise((m, q, p) => { p.epsilon = 0.1; }),
    promise((m, q, p) => { p.thresholds.keep = String(2n ** 64n - 1n); }),
    [() => {}, undefined],
  ];
  for (const [change, type] of cases) {
    const loading = Client.load(manifestOf(change), { maxEpsilon: 32 });
    assert.equal(await loading.then(() => undefined, (error) => error.type), type);
  }
  const spec = specOf('oue');
  spec.mechanism.epsilon = 0.5;
  await assert.rejects(mechanism(spec), refused('broken-promise'));
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
      const bytes = manifestOf((m, q, p) => {
        Object.assign(m, numbers);
        Object.assign(p, honestChain);
      }, 'lgrr');
      const loading = Client.load(bytes, { book: memoryBook() });
      assert.equal(await loading.then(() => undefined, (error) => error.type), type, [changes, more]);
    }
  }
});

test('hashed and coarse answers are not remembered with changes', async () => {
  for (const name of ['lblh', 'lolh', 'dbitflippm']) {
    for (const [changes, type] of [[0, undefined], [1, 'broken-promise']]) {
      const bytes = manifestOf((m, q, p) => {
        Object.assign(m, { rounds: 2, changes, epsilon: 32 });
        if (name === 'dbitflippm') p.design.w = 3;
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
  await assert.rejects(Client.load(three), refused('broken-promise', /kind/));
});

// ---- answers

const kinds = readVectors('wire/kinds.json').manifest;
const good = { way: 'car', ever: true, hours: 5, height: 1.7, word: 'tea' };

test('bad answers are refused before any coin is drawn, and not repeated', async () => {
  const book = memoryBook();
  const client = await Client.load(utf8(kinds), { book });
  const bad = {
    way: [null, undefined, 1.5, NaN, {}, ['car'], '\ud800'],
    ever: ['maybe', 'true', 1, 0, null, undefined],
    hours: [NaN, Infinity, '5', true, null, 5n],
    height: [NaN, -Infinity, '1.7', false, null, undefined],
    word: [5, null, true, '\ud800', 'a\udc00b', ['tea'], '', ' \u3000'],
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
  for (const nothing of [null, undefined, 5, 'text', Object.create(good)]) {
    await assert.rejects(client.answer(nothing), refused('bad-answer', /"way"/));
  }
  const sheet = await client.begin();
  await assert.rejects(sheet.prepare({ ...good, ever: 'a secret' }), (error) => {
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
  const places = client.reports.map(() => '');
  assert.deepEqual(book.pages[client.digest].rounds, { 1: { places } });
});

/** The index that an answer becomes: with coins of zeros grr reports it as it is. */
async function indexOf(answer, domain) {
  const bytes = manifestOf((m) => { m.questions = [{ name: 'way', optional: false, ...domain }]; });
  const book = bookWith(await digestOf(bytes), 1, { words: '00'.repeat(16) });
  const sheet = await (await Client.load(bytes, { book })).begin();
  return parseInt((await sheet.prepare({ way: answer })).reports.way, 16);
}

test('answers become the index of their value', async () => {
  const edges = [-0.5, 5, 7.25];
  const numbers = [[-1e300, 0], [-0.5, 1], [0, 1], [4.99, 1], [5, 2], [7, 2], [7.25, 3], [8, 3]];
  for (const [answer, index] of numbers) assert.equal(await indexOf(answer, { kind: 'number', edges }), index);
  for (const [answer, index] of [[true, 0], ['yes', 0], [false, 1], ['no', 1]]) {
    assert.equal(await indexOf(answer, { kind: 'yes/no' }), index);
  }
  const ways = { kind: 'choice', answers: ['car', 'other', 'train'], ordered: false, other: 'other' };
  for (const [answer, index] of [['car', 0], ['train', 2], ['rocket', 1], [7, 1], [true, 1]]) {
    assert.equal(await indexOf(answer, ways), index);
  }
});

test('a skip is null, and only of optional questions', async () => {
  const optional = true;
  assert.equal(await indexOf(null, { kind: 'yes/no', optional }), 2);
  assert.equal(await indexOf(null, { kind: 'number', edges: [5], optional }), 2);
  const ways = { kind: 'choice', answers: ['car', 'other'], ordered: false, other: 'other' };
  assert.equal(await indexOf(null, { ...ways, optional }), 2);
  for (const answer of ['(no answer)', undefined]) {
    await assert.rejects(indexOf(answer, { kind: 'yes/no', optional }), refused('bad-answer'));
  }
  await assert.rejects(indexOf(null, ways), refused('bad-answer'));
});

test('public fields are sent as they are, all of them and no others', async () => {
  const bytes = manifestOf((m) => {
    m.fields = [{ name: 'region', values: ['north', 'south'] }, { name: 'age', values: ['old', 'young'] }];
  });
  const sheet = await (await Client.load(bytes)).begin();
  const given = { region: 'south', age: 'old', more: 1 };
  const { body } = await sheet.prepare({ way: 'car' }, given);
  assert.match(body, /"fields":{"age":"old","region":"south"},"id"/);
  for (const fields of [undefined, {}, { region: 'south' }, { ...given, age: 'middle' }, { ...given, age: null }]) {
    await assert.rejects(sheet.prepare({ way: 'car' }, fields), refused('bad-answer', /"(age|region)" must be one of/));
  }
});

test('questions may be named like what all objects have', async () => {
  for (const name of ['constructor', 'valueOf'.toLowerCase(), 'hasown']) {
    const bytes = manifestOf((m, q) => {
      q.name = m.reports[0].name = name;
      m.reports[0].of = [name];
    });
    const sheet = await (await Client.load(bytes)).begin();
    await assert.rejects(sheet.prepare({}), refused('bad-answer'));
    assert.deepEqual(Object.keys((await sheet.prepare({ [name]: 'car' })).reports), [name]);
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
  assert.equal(first.body, JSON.stringify({ collection, fields: {}, id: own, reports, round: 1 }));
  assert.match(`${own} ${reports.way}`, /^[0-9a-f]{32} 0[012]$/);
  assert.equal((await sheet.prepare({ way: 'train' })).id, own);
  assert.equal((await sheet.prepare({ way: 'car' })).body, first.body);
  const { id } = await (await client.begin()).prepare({ way: 'car' });
  assert.notEqual(id, own);
});

test('another answer uses the same coins', async () => {
  // With these, oue reports its own bit always and others never.
  const bytes = manifestOf(() => {}, 'oue');
  const { one, zero } = specOf('oue').mechanism.thresholds;
  const between = ((BigInt(one) + BigInt(zero)) / 2n).toString(16).padStart(16, '0');
  const words = between.match(/../g).reverse().join('').repeat(3);
  const book = bookWith(await digestOf(bytes), 1, { words });
  const sheet = await (await Client.load(bytes, { book })).begin();
  for (const [way, row] of [['car', '01'], ['train', '02'], ['other', '04'], ['car', '01']]) {
    assert.equal((await sheet.prepare({ way })).reports.way, row);
  }
});

test('only the drawn question needs an answer', async () => {
  const client = await Client.load(utf8(readVectors('wire/sampled.json').manifest));
  const sheet = await client.begin();
  assert.equal(sheet.questions.length, 1);
  const [{ name }] = sheet.questions;
  assert.deepEqual(sheet.reports, [{ name: 'all', of: [name] }]);
  const { reports } = await sheet.prepare({ [name]: good[name] });
  assert.deepEqual(Object.keys(reports), ['all']);
  await assert.rejects(sheet.prepare({}), refused('bad-answer', RegExp(`"${name}"`)));
});

test('a report says what it says in words', async () => {
  const says = async (name, row) => {
    const { m: { family, p } } = (await Client.load(manifestOf((m, q, leaf) => {
      if (leaf.design.omega) leaf.design.omega = 1;
    }, name), { book: memoryBook(), maxEpsilon: 32 })).reports[0];
    return family.says?.(p, Uint8Array.from(row), ['car', 'train', 'other']);
  };
  assert.equal(await says('grr', [2]), 'other');
  assert.deepEqual(await says('oue', [0b101]), ['car', 'other']);
  assert.deepEqual(await says('ss', [0b010]), ['train']);
  assert.deepEqual(await says('losue', [0]), []);
  assert.equal(await says('lgrr', [1]), 'train');
  assert.equal(await says('olh', Array(13).fill(0)), undefined);
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
  const to = 'https://example.org/v2/submissions';
  const client = await Client.load(manifestOf(), { fetch, to, pause: 1, ...options });
  return { requests, sent: client.answer({ way: 'car' }) };
}

test('a submission is counted once', async () => {
  const { sent, requests } = await send([201]);
  assert.deepEqual(await sent, { counted: true });
  assert.equal(requests.length, 1);
  const [{ url, method, headers, body, cache, credentials, referrerPolicy }] = requests;
  assert.equal(cache, 'no-store');
  assert.equal(url, 'https://example.org/v2/submissions');
  assert.deepEqual([method, credentials, referrerPolicy], ['POST', 'omit', 'no-referrer']);
  assert.deepEqual(headers, { 'Content-Type': 'application/json' });
  assert.deepEqual(Object.keys(JSON.parse(body)), ['collection', 'fields', 'id', 'reports', 'round']);
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
  const own = ['bad-manifest', 'unsupported', 'bad-answer', 'bad-round', 'broken-promise', 'too-much', 'changed',
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
  const to = 'https://example.org/v2/submissions';
  const client = await Client.load(manifestOf(), { fetch: hanging, to, pause: 1, tries: 3 });
  await assert.rejects(client.answer({ way: 'car' }), refused('no-answer'));
  for (const fetch of [hanging, stops]) {
    await assert.rejects(Client.load('https://example.org/v2/manifest', { fetch }), refused('no-answer'));
  }
  clearInterval(alive);
  assert.deepEqual(waited, Array(5).fill(30_000));
});

test('a manifest is at most 1 MiB', async () => {
  const id = (i) => String(i).padStart(100, 'x');
  const having = (count) => manifestOf((m, q) => { q.answers = Array.from({ length: count }, (_, i) => id(i)); }, 'oue');
  assert.ok(having(10_200).length > 2 ** 20);
  await assert.rejects(Client.load(having(10_200)), refused('bad-manifest', /bytes/));
  assert.ok(having(10_100).length < 2 ** 20);
  await Client.load(having(10_100));
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
  const address = 'https://example.org/some/v2/manifest';
  for (const url of [address, new URL(address)]) {
    const client = await Client.load(url, { fetch });
    assert.deepEqual(await client.answer({ way: 'train' }), { counted: true });
  }
  const there = ['https://example.org/some/v2/submissions', 'POST'];
  assert.deepEqual(requests.slice(0, 2), [[address, undefined], there]);
  const { fetch: none } = server(404);
  await assert.rejects(Client.load(address, { fetch: none }), refused('unexpected'));
  const { fetch: silent } = server(null);
  await assert.rejects(Client.load(address, { fetch: silent }), refused('no-answer'));
});
