// What people read, in the language that they read.

import assert from 'node:assert/strict';
import test from 'node:test';
import { loadTexts, readTexts } from '../deniable.js';
import { utf8 } from './tools.js';

const client = { digest: 'ab'.repeat(32) };
const document = {
  deniable: 2,
  collection: client.digest,
  languages: {
    de: { title: 'Gesundheit', questions: [{ name: 'smoking', ask: 'Rauchen Sie?', answers: ['nie', 'täglich'] }] },
    en: {
      title: 'Health', about: 'All of it.', fields: [{ name: 'region', ask: 'Where?', answers: ['North', 'South'] }],
      questions: [{ name: 'smoking', ask: 'Do you smoke?', answers: ['never'], scale: 'unknown' }, { name: 'sleep', unit: 'hours' }, null, 5],
      consent: 'unknown',
    },
    'pt-BR': { title: 'Saúde' },
  },
  candidates: { drug: ['aspirin', 5, ''] },
  later: 'unknown',
};
const read = (preferred, change = {}) => readTexts(utf8(JSON.stringify({ ...document, ...change })), client, preferred);

test('a device chooses the language', () => {
  const cases = [[['de'], 'de'], [['de-AT', 'en'], 'de'], [['fr', 'EN-gb'], 'en'], [['pt'], 'pt-BR'],
    [['pt-PT'], 'pt-BR'], [['fr'], 'de'], [[], 'de'], [['fr', 'xx', 'en'], 'en']];
  for (const [preferred, language] of cases) assert.equal(read(preferred).language, language, String(preferred));
});

test('what is missing or too short is shown as its id; unknown keys are ignored', () => {
  const ids = ['never', 'daily'];
  const [de, en] = [read(['de']), read(['en'])];
  assert.deepEqual([de.title, de.about], ['Gesundheit', '']);
  assert.deepEqual(de.questions.answers('smoking', ids), ['nie', 'täglich']);
  assert.equal(en.questions.ask('smoking'), 'Do you smoke?');
  assert.deepEqual(en.questions.answers('smoking', ids), ids);
  assert.equal(en.questions.ask('sleep'), 'sleep');
  assert.deepEqual(['sleep', 'smoking'].map(en.questions.unit), ['hours', '']);
  assert.equal(en.fields.ask('region'), 'Where?');
  assert.deepEqual(en.fields.answers('region', ['north', 'south']), ['North', 'South']);
  assert.deepEqual([en.candidates('drug'), en.candidates('constructor')], [['aspirin'], []]);
});

test('whatever a document is, there are words', () => {
  const odd = [{ deniable: 1 }, { collection: 'cd'.repeat(32) }, { languages: null }, { languages: { en: null } },
    { languages: { en: { title: 5, about: [], questions: 'x', fields: {} } } }, { candidates: null }];
  for (const change of odd) {
    const texts = read(['en'], change);
    assert.equal(typeof texts.title, 'string');
    assert.equal(typeof texts.questions.ask('smoking'), 'string');
    assert.deepEqual(texts.questions.answers('smoking', ['a', 'b', 'c']), ['a', 'b', 'c']);
    assert.ok(Array.isArray(texts.candidates('drug')));
  }
  for (const bytes of [utf8(''), utf8('null'), utf8('[]'), Uint8Array.of(255)]) {
    assert.equal(readTexts(bytes, client, []).title, `Collection ${client.digest.slice(0, 12)}`);
  }
});

test('a collector without texts is no error, one that does not answer is', async () => {
  const fetch = async () => new Response(null, { status: 404 });
  assert.equal((await loadTexts('https://example.org/v2/texts', client, { fetch })).questions.ask('a'), 'a');
  const silent = async () => { throw new TypeError('fetch failed'); };
  await assert.rejects(loadTexts('https://example.org/v2/texts', client, { fetch: silent }), { type: 'no-answer' });
});
