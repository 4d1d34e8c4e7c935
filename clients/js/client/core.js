// What every device needs: coins, checks of the manifest, the book, submissions. Families of
// mechanisms and kinds of answers register themselves here. docs/formats.md and wire-format.md
// specify all of it.

export class DeniableError extends Error {
  name = 'DeniableError';

  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

export const refuse = (type, message) => {
  throw new DeniableError(type, message);
};
/** Whatever else goes wrong is a refusal of this type. */
const refused = (type) => (error) => {
  throw error instanceof DeniableError ? error : new DeniableError(type, String(error));
};

// ---- coins

export const W = 1n << 64n;

export class Coins {
  used = 0;

  constructor(bytes) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  word = () => this.view.getBigUint64(8 * this.used++, true);
  below = (threshold) => this.word() < threshold;
  choice = (size) => Number((this.word() * BigInt(size)) >> 64n);
  /** How many edges, of which the last is W, are at most the next word. */
  pick = (edges, word = this.word()) => edges.findIndex((edge) => edge > word);
}

/** Draws with coins of exactly so many words. */
export function drawn(bytes, words, draw) {
  const coins = new Coins(bytes);
  const result = bytes.length === 8 * words && draw(coins);
  return coins.used === words ? result : refuse('coins', `they must be ${words} words`);
}

let before;

/**
 * Random bytes. Refuses a dead source: a word that comes again, or a bit that never changes (by
 * chance: 2^-30). The first 512 bytes are only looked at: few words would not show dead bits.
 */
export function secureBytes(count) {
  const bytes = new Uint8Array(512 + count);
  try {
    for (let at = 0; at < bytes.length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
  } catch (error) {
    refused('coins')(error);
  }
  const words = new BigUint64Array(bytes.buffer, 0, bytes.length >> 3);
  const changing = words.reduce((bits, word) => bits | (word ^ words[0]), 0n);
  if (new Set([before, ...words]).size <= words.length || changing !== W - 1n) {
    refuse('coins', 'this device has no random numbers');
  }
  before = words[0];
  return bytes.slice(512);
}

// ---- bytes

export const fresh = (count) => hex(secureBytes(count));
export const utf8 = (text) => new TextEncoder().encode(text);
export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
export const hex = (bytes) => Array.from(bytes, (x) => (x + 256).toString(16).slice(1)).join('');
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (x) => parseInt(x, 16));
export const range = (size) => Array.from({ length: size }, (_, i) => i);
const allOf = (names, of) => Object.fromEntries(names.map((name) => [name, of(name)]));
const named = (list) => list.map(({ name }) => name);

/** An index below `size`, in as few bytes as hold all of them. */
export const little = (x, size) =>
  Uint8Array.from(range(size <= 256 ? 1 : size <= 65536 ? 2 : 4), (i) => x / 256 ** i);

/** RFC 8785. */
export function canonical(x) {
  if (Array.isArray(x)) return `[${x.map(canonical)}]`;
  return Object(x) === x
    ? `{${Object.keys(x).sort().map((name) => canonical(name) + ':' + canonical(x[name]))}}` : JSON.stringify(x);
}

/** One answer, however it was spelt; of the listed blanks JavaScript's \s lacks only U+0085. */
export function tidy(text, fold = 'case') {
  const whole = text.normalize();
  return (fold === 'case' ? whole.toUpperCase().toLowerCase().normalize() : whole)
    .replace(/[\s\x85]+/g, ' ').replace(/^ | $/g, '');
}

// ---- checks: a manifest is not trusted

export const isInt = (x, low, high) => Number.isInteger(x) && low <= x && x <= high;
export const isText = (x) => typeof x === 'string' && !/\p{Cs}/u.test(x);
export const isList = (x, test, least, most) =>
  Array.isArray(x) && isInt(x.length, least, most) && x.every(test);
const isBoolean = (x) => typeof x === 'boolean';
const isLabel = (x) => isText(x) || isBoolean(x) || Number.isSafeInteger(x);
const isEpsilon = (x) => 2 ** -20 <= x && x <= 32 && Number.isFinite(x);
export const isLike = (form) => (x) => isText(x) && form.test(x);
export const isName = isLike(/^[a-z][a-z0-9_]{0,31}$/);
const isId = (x) => isText(x) && x && tidy(x, 'none') === x && !/\p{Cc}|.{101}/u.test(x);
const differ = (list) => new Set(list).size === list.length;
export const isIds = (x, most) => isList(x, isId, 2, most) && differ(x);

export const bad = (where, what) => refuse('bad-manifest', `${where}: "${what}" is not understood`);
const keep = (where, what, right) => right || refuse('broken-promise', `${where}: "${what}" breaks the promise`);
const unknown = (where, what) => refuse('unsupported', `${where}: ${what} is not known here`);

/** Exactly these keys, and each as its rule says. */
export function check(where, object, rules) {
  if (object?.constructor !== Object) bad(where, 'keys');
  for (const name of Object.keys({ ...rules, ...object })) {
    if (!Object.hasOwn(rules, name) || !Object.hasOwn(object, name)
      || !rules[name](object[name], object)) bad(where, name);
  }
  return true;
}

// ---- kinds of answers

/** By name; of a kind, the forms that it has, told apart by their keys. */
export const KINDS = new Map();
export const MECHANISMS = new Map();

/** How the module of a family makes itself known. */
export function register(mechanisms, kinds = {}) {
  for (const name in mechanisms) MECHANISMS.set(name, mechanisms[name]);
  for (const name in kinds) KINDS.set(name, [...KINDS.get(name) ?? [], kinds[name]]);
}

/** So many listed answers; a skip is one more. */
export const listed = (count, optional) => ({ k: count + optional, zero: 0, skip: count });

const YES = ['yes', 'no'];
/** Twelve digits, as Python rounds: of two that are as near, the even one. */
export const digits = (x) =>
  Number(Number(x.toExponential(40).replace(/([02468])50{28}e/, '$1e')).toPrecision(12));

// A form of a kind has rules for its keys, what follows `of` them, what an answer `must` be, the
// integer that `encode` makes of it (-1: none) and, if answers are listed, the `names` of all.
register({}, {
  choice: {
    keys: {
      answers: (x, { optional }) => isIds(x, 65536) && !(optional && x.includes('(no answer)')),
      ordered: isBoolean,
      other: (x, { answers }) => x === null || answers.includes(x),
    },
    of: ({ answers, optional }) => listed(answers.length, optional),
    names: ({ answers }) => answers,
    must: ({ answers }) => `one of ${answers}`,
    encode: ({ answers, other }, x) => answers.indexOf(answers.includes(x) || !isLabel(x) ? x : other),
  },
  'yes/no': {
    keys: {},
    of: ({ optional }) => listed(2, optional),
    names: () => YES,
    must: () => 'one of true, false',
    encode: (_, x) => YES.indexOf(isBoolean(x) ? YES[x ? 0 : 1] : x),
  },
  number: {
    keys: {
      edges: (x) => isList(x, (edge, i) => Number.isFinite(edge) && !(i && digits(edge) <= digits(x[i - 1])), 1, 1000),
    },
    of: ({ edges, optional }) => listed(edges.length + 1, optional),
    names: async ({ edges }) => (await import('./ranges.js')).names(edges),
    must: () => 'a finite number',
    encode: ({ edges }, x) => (Number.isFinite(x) ? edges.filter((edge) => edge <= x).length : -1),
  },
});

/** A domain as it is published, with what follows from it. */
export function domainOf(where, spec) {
  const { kind = bad(where, 'kind') } = spec;
  const form = (KINDS.get(kind) ?? unknown(where, `kind ${kind}`))
    .find(({ keys }) => Object.keys(keys).every((key) => key in spec)) ?? bad(where, `keys of ${kind}`);
  check(where, spec, { kind: isText, optional: isBoolean, ...form.keys });
  return { ...spec, ...form.of(spec), form };
}

/** The integers of an answer. No message repeats it. */
export async function encode(name, domain, answer) {
  const value = answer === null && domain.optional ? domain.skip : await domain.form.encode(domain, answer);
  const must = `the answer to "${name}" must be ${domain.form.must(domain)}`;
  return value < 0 ? refuse('bad-answer', must.slice(0, 300)) : value;
}

// ---- mechanisms

/** Doubles have other last digits than Python's exact ratios. Not above 0: reports say other answers. */
const within = (found, epsilon) => found > 0 && found <= epsilon + 1e-9;
/** ln(n / d), also where it is small. */
export const log = (n, d) => Math.log1p(Number(n - d) / Number(d));

/** A mechanism of a manifest, for the answers of a domain. */
export async function made(where, domain, leaf) {
  const { name = bad(where, 'name'), epsilon, epsilon_inf: always = Infinity, epsilon_1: once = epsilon } = leaf;
  const family = MECHANISMS.get(name) ?? unknown(where, `mechanism ${name}`);
  const { budgets = ['epsilon'], design = {}, thresholds = [], takes = ({ k }) => k } = family;
  const rules = (names, rule) => (x) => check(where, x, allOf(names, () => rule));
  check(where, leaf, {
    name: isText,
    ...allOf(budgets, () => Number.isFinite),
    design: rules(Object.keys(design), Number.isSafeInteger),
    ...family.branches ?? { thresholds: rules(thresholds, isLike(/^[1-9]\d{0,19}$/)) },
  });
  const p = { ...leaf.design, domain, k: domain.k, epsilon: once };
  keep(where, 'kind', takes(domain));
  for (const x of budgets) keep(where, x, isEpsilon(leaf[x]));
  for (const x in design) {
    const [low, high, suits = () => true] = design[x](p);
    keep(where, x, isInt(p[x], low, high) && suits(p[x]));
  }
  for (const x of thresholds) keep(where, x, (p[x] = BigInt(leaf.thresholds[x])) < W);
  Object.assign(p, await family.ready?.(p, leaf, where));
  const cost = family.ratio(p);
  const lasting = family.lasting?.(p) ?? cost;
  keep(where, 'epsilon', within(cost, once) && within(lasting, always) && once < always);
  const words = family.words(p);
  const report = (value, bytes) => drawn(bytes, words, (coins) => family.row(p, value, coins));
  return { family, p, cost, lasting, report, words, cells: family.cells?.(p) ?? p.k };
}

// ---- manifests

async function understood(bytes, told) {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  const manifest = JSON.parse(text);
  if (bytes.length > 2 ** 20 || canonical(manifest) !== text) bad('manifest', 'bytes');
  const { deniable: version } = manifest;
  if (version !== 2 && text[0] === '{') {
    unknown('manifest', `version ${version === 1 ? '0.1, which was never released,' : version}`);
  }
  const digest = hex(await sha256(bytes));
  if (digest !== (told ?? digest)) refuse('other-collection', `the digest is ${digest}`);
  const isSome = (x) => isList(x, Boolean, 1, 256);
  check('manifest', manifest, {
    deniable: Boolean,
    epsilon: isEpsilon,
    unbounded: (x) => isList(x, isName, 0, 256),
    rounds: (x) => isInt(x, 1, 65535),
    changes: (x, { rounds }) => isInt(x, 0, rounds - 1),
    fields: Array.isArray,
    after: () => true,
    questions: isSome,
    reports: isSome,
  });
  const { questions, fields, after, rounds, changes, epsilon, unbounded } = manifest;
  if (fields.length || after !== null) (await import('./open.js')).checkOpen(fields, after);
  const asked = named(questions);
  const domains = {};
  for (const { name, ...domain } of questions) {
    domains[isName(name) ? name : bad('question', 'name')] = domainOf(`question "${name}"`, domain);
  }
  if (!differ(named([...fields, ...questions]))) bad('manifest', 'names');
  const reports = [];
  for (const report of manifest.reports) {
    const { name, of } = report;
    const where = `report "${name}"`;
    check(where, report, {
      name: isName,
      of: () => isList(of, isName, 1, 256) && (of[1] ? !asked.includes(name) : of[0] === name)
        && String(of) === String(asked.filter((question) => of.includes(question))),
      mechanism: (x) => !(x.branches && of[1] && rounds > 1),
    });
    const parts = allOf(of, (question) => domains[question]);
    const domain = of[1] ? { parts, zero: of.map((question) => parts[question].zero) } : parts[name];
    const m = await made(where, domain, report.mechanism);
    const again = rounds > 1 && m.family.again?.(m.p);
    // Where answers share a permanent draw, whether two do shows at any epsilon.
    const keys = changes && !again?.keyIsValue ? Infinity : Math.min(changes + 1, m.p.k || Infinity);
    reports.push({
      name, of, m, again,
      words: (again || m).words,
      cost: again ? keys * m.lasting : rounds * m.cost,
      bytes: m.report(domain.zero, new Uint8Array(8 * m.words)).length,
      branches: m.p.branches?.length ?? 0,
    });
  }
  const sum = (what) => reports.reduce((all, report) => all + report[what], 0);
  if (!differ(named([...fields, ...reports]))
    || new Set(reports.flatMap(({ of }) => of)).size < asked.length
    || sum('words') > 2 ** 17 || sum('bytes') > 2 ** 18 || sum('branches') > 8192
    || reports.some(({ m }) => m.cells > 2 ** 20)) bad('manifest', 'reports');
  keep('manifest', 'epsilon', within(sum('cost'), epsilon) && !unbounded.length);
  return { manifest, digest, domains, reports };
}

// ---- the book: what a device drew and sent, and to whom

/** IndexedDB. One transaction at a time: all tabs and processes of a browser take turns. */
export const browserBook = {
  update: (change) => new Promise((resolve, reject) => {
    const opening = indexedDB.open('deniable:2');
    opening.onupgradeneeded = () => opening.result.createObjectStore('book');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const turn = database.transaction('book', 'readwrite', { durability: 'strict' });
      const book = turn.objectStore('book');
      let refusal;
      turn.oncomplete = resolve;
      turn.onabort = () => reject(refusal ?? turn.error);
      book.get(0).onsuccess = ({ target }) => {
        try {
          book.put(change(target.result ?? {}), 0);
        } catch (error) {
          refusal = error;
          turn.abort();
        }
      };
      database.close(); // when the turn ends
    };
  }),
};

/** For a caller who wants no book: it is forgotten with the sheet. */
const fleeting = (pages = {}) => ({
  update: async (change) => (pages = change(structuredClone(pages))),
});

/** Nobody answers two steps; a collection at an address where another was answered is another budget. */
function agreed({ digest, root, address, another }, pages) {
  const sent = Object.keys(pages).filter((name) =>
    Object.values(pages[name].rounds).some(({ body }) => body));
  if (sent.some((name) => name !== digest && pages[name].root === root)) {
    refuse('answered', 'another step was answered');
  }
  const here = sent.filter((name) => pages[name].at[address]);
  if (!here.length || [...here, another].includes(digest)) return;
  const spent = here.reduce((sum, name) => sum + pages[name].epsilon, 0);
  throw Object.assign(new DeniableError('changed', 'another collection was answered'), { digest, spent });
}

/** Changes the page of this collection, in one turn: there is one, at whatever address it is served. */
async function noted(collection, change) {
  const { book, address, digest, root, manifest: { epsilon } } = collection;
  let own;
  const turn = (pages) => {
    agreed(collection, pages);
    own = pages[digest] ??= { epsilon, root, at: {}, memos: {}, rounds: {} };
    own.at[address] = true;
    change(own);
    return pages;
  };
  await (async () => book.update(turn))().catch(refused('memo'));
  return own ?? refuse('memo', 'there is no book');
}

// ---- submissions

/** Coins, secrets and an id, unless the book has them already. */
function draw({ manifest: { changes }, reports }, round, { memos, rounds }) {
  const kept = rounds[round];
  if (kept.body) refuse('answered', 'this round was answered');
  for (const [i, { again }] of reports.entries()) if (again) memos[i] = again.memo(memos[i], changes + 1);
  kept.words ??= reports.map(({ words }, i) => kept.places[i] + fresh(8 * words - kept.places[i].length / 2)).join('');
  kept.id ??= fresh(16);
}

/** What would be sent; and for each memo how it was, and its keys once this is sent. */
async function fill({ manifest: { changes }, reports, digest }, values, fields, round, { memos, rounds }) {
  const { words, id } = rounds[round];
  const coins = unhex(words);
  const rows = {};
  const marks = [];
  let at = 0;
  for (const [i, { name, of, m, again, words: eaten }] of reports.entries()) {
    const bytes = coins.subarray(at, (at += 8 * eaten));
    const value = of[1] ? of.map((question) => values[question]) : values[of];
    const { row, keys } = again
      ? await again.report(memos[i], changes + 1, value, bytes) : { row: m.report(value, bytes) };
    if (again) marks.push({ i, keys, was: JSON.stringify(memos[i]) });
    rows[name] = hex(row);
  }
  const body = canonical({ collection: digest, fields, id, reports: rows, round });
  return { made: { body, id, reports: rows }, marks };
}

/** Keys and body together, before the first byte is sent. */
function record({ made: { body }, marks }, round, { memos, rounds }) {
  const kept = rounds[round]?.body;
  if (kept === body) return;
  if (kept) refuse('answered', 'this round was answered');
  for (const { i, keys, was } of marks) {
    if (JSON.stringify(memos[i]) !== was) refuse('prepared', 'prepare it again');
    memos[i].keys = keys;
  }
  rounds[round] = { body };
}

async function begin(shared, round = 1) {
  const collection = { ...shared, book: shared.book ?? fleeting() };
  const { manifest: { rounds, questions, fields }, domains, reports } = collection;
  if (!isInt(round, 1, rounds)) refuse('bad-round', `the round must be 1..${rounds}`);
  // What is drawn is drawn before there is any answer, and never again.
  const { places, body } = (await noted(collection, (own) => {
    own.rounds[round] ??= { places: reports.map(({ m }) => (m.family.asks ? fresh(8) : '')) };
  })).rounds[round];
  const asks = body ? [] : reports.map(({ name, of, m: { family, p } }, i) => ({
    name, of: family.asks?.(p, new Coins(unhex(places[i]))) ?? of,
  }));
  let ready;

  const sheet = {
    questions: questions.filter(({ name }) => asks.some(({ of }) => of.includes(name))),
    reports: asks,
    body,
    async prepare(answers, open = {}) {
      const shown = fields[0] ? (await import('./open.js')).shown(fields, open) : {};
      const given = { __proto__: null, ...answers };
      const values = {};
      for (const { name } of sheet.questions) {
        values[name] = await encode(name, domains[name], given[name]);
      }
      const own = await noted(collection, (own) => draw(collection, round, own));
      ready = await fill(collection, values, shown, round, own);
      return ready.made;
    },
    async send() {
      if (!shared.to) refuse('no-answer', 'say where to send');
      if (!sheet.body) {
        const sent = ready ?? refuse('prepared', 'prepare it first');
        await noted(collection, (own) => record(sent, round, own));
        sheet.body = sent.made.body;
      }
      return post(collection, sheet.body);
    },
  };
  return sheet;
}

/** Again where another tab changed a memo meanwhile. */
async function answer(collection, answers, round, fields) {
  const sheet = await begin(collection, round);
  for (;;) {
    try {
      await sheet.prepare(answers, fields);
      return await sheet.send();
    } catch (error) {
      if (error.type !== 'prepared') throw sheet.body ? Object.assign(error, { sheet }) : error;
    }
  }
}

// ---- the network

/** An answer that has not ended after 30 seconds is none. */
const ask = (fetch, url, more) => fetch(url, {
  cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer', ...more,
  signal: AbortSignal.timeout?.(30_000),
}).catch(() => null);

/** A server cannot say what only this client says: that nothing was sent, for example. */
const OTHERS = /^(?!bad-|broken|too-much|unsupported|changed|answered|prepared|memo|coins|no-answer)[a-z-]{1,40}$/;

async function failure(response) {
  if (!response) return new DeniableError('no-answer', 'the collector does not answer');
  const { type, detail } = Object(await response.json().catch(() => null));
  const word = isText(type) ? type.replace('urn:deniable:', '') : '';
  const words = isText(detail) ? detail : `the collector answered ${response.status || 'elsewhere'}`;
  return new DeniableError(OTHERS.test(word) ? word : 'unexpected', words.slice(0, 300).replace(/\p{C}/gu, '?'));
}

async function post({ to, key, fetch, tries, pause }, body) {
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  for (;; pause *= 2) {
    // A client that follows a redirect asks for a page, and takes it for a receipt.
    const response = await ask(fetch, to, { method: 'POST', headers, body, redirect: 'manual' });
    const status = response?.status ?? 503;
    if (/20[01]/.test(status)) return { counted: status === 201 };
    const wait = Math.max(pause, 1000 * response?.headers.get('retry-after') || 0);
    // After these statuses the same is sent again.
    if (!/408|429|50[0234]/.test(status) || --tries < 1 || wait > 60_000) throw await failure(response);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

export async function fetched(url, fetch = globalThis.fetch) {
  const response = await ask(fetch, url);
  const bytes = response?.ok && await response.arrayBuffer().catch(() => null);
  // Without bytes it broke off.
  if (!bytes) throw await failure(response?.ok ? null : response);
  return bytes;
}

async function load(source, {
  book = 'indexedDB' in globalThis ? browserBook : undefined, fetch = globalThis.fetch,
  maxEpsilon = 8, tries = 6, pause = 500, digest: told, to: place, ...options
} = {}) {
  const absolute = (address) => new URL(address, globalThis.location?.href);
  const given = source.bytes ?? source;
  const url = given.byteLength === undefined && absolute(given);
  const bytes = new Uint8Array(url ? await fetched(url, fetch) : given);
  const own = await understood(bytes, told).catch(refused('bad-manifest'));
  const { manifest: { epsilon, after }, digest, reports } = own;
  if (!(epsilon <= maxEpsilon)) refuse('too-much', `epsilon ${epsilon} is above ${maxEpsilon}`);
  if (!book && (book !== null || reports.some(({ again }) => again))) refuse('memo', 'there is no book');
  const to = place ? absolute(place) : url ? new URL('submissions', url) : undefined;
  const address = to ? String(new URL('.', to)) : '';
  const collection = { ...options, ...own, root: after?.root ?? digest, book, address, to, fetch, tries, pause };
  return {
    ...own,
    begin: (round) => begin(collection, round),
    answer: (...given) => answer(collection, ...given),
  };
}

export const Client = { load };
