// An answer goes in, only its report comes out: see docs/formats.md, memo.md and wire-format.md.
import { browserBook } from './book.js';
import { affordable, honest } from './promise.js';

export class DeniableError extends Error {
  name = 'DeniableError';

  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

const refuse = (type, message) => {
  throw new DeniableError(type, message);
};

// ---- coins

const W = 1n << 64n;

/** Without bytes: zeros. */
class Coins {
  used = 0;

  constructor(bytes) {
    this.view = bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  word() {
    const at = 8 * this.used++;
    if (!this.view) return 0n;
    if (at + 8 > this.view.byteLength) refuse('coins', 'too few');
    return this.view.getBigUint64(at, true);
  }

  below = (threshold) => this.word() < threshold;
  choice = (size) => Number((this.word() * BigInt(size)) >> 64n);
}

function drawn(bytes, draw) {
  const coins = new Coins(bytes);
  const result = draw(coins);
  return 8 * coins.used === bytes.length ? result : refuse('coins', 'too many');
}

let before;

/** Refuses a dead source: words that come again, or a bit that never changes. By chance: 2^-30. */
function alive({ buffer }) {
  const words = new BigUint64Array(buffer, 0, buffer.byteLength >> 3);
  const changing = words.reduce((bits, word) => bits | (word ^ words[0]), 0n);
  if (new Set([before, ...words]).size <= words.length || changing !== W - 1n) {
    refuse('coins', 'the random numbers of this device are none: nothing is sent');
  }
  before = words[0];
}

/** The first 512 bytes are only looked at: few words would not show which bits are dead. */
export function secureBytes(count) {
  const bytes = new Uint8Array(512 + count);
  try {
    for (let at = 0; at < bytes.length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
  } catch (error) {
    refuse('coins', `this device gives no random numbers: ${error}`);
  }
  alive(bytes);
  return bytes.slice(512);
}

const utf8 = (text) => new TextEncoder().encode(text);
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
const hex = (bytes) => Array.from(bytes, (x) => x.toString(16).padStart(2, '0')).join('');
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (x) => parseInt(x, 16));
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const range = (size) => Array.from({ length: size }, (_, i) => i);

const little = (x, size) =>
  Uint8Array.from(range(size <= 256 ? 1 : size <= 65536 ? 2 : 4), (i) => Math.floor(x / 256 ** i));

function pack(size, values) {
  const least = Math.ceil(size / 8);
  const bytes = new Uint8Array(least > 4 ? (least + 7) & -8 : least === 3 ? 4 : least);
  for (const v of values) bytes[v >> 3] |= 1 << (v & 7);
  return bytes;
}

function mix(x) {
  x = BigInt.asUintN(64, x + 0x9e3779b97f4a7c15n);
  x = BigInt.asUintN(64, (x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
  x = BigInt.asUintN(64, (x ^ (x >> 27n)) * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

function rank(value, size, start) {
  const own = mix(start + BigInt(value));
  let place = 0;
  for (let v = 0n; v < size; v++) if (mix(start + v) < own) place++;
  return place;
}

const dealt = (value, size, seed) => (seed < 0 ? value : rank(value, size, BigInt(seed) << 32n));

function permute(value, size, key) {
  if (size <= 64) return rank(value, size, key);
  const bits = size.toString(2).length;
  let x = BigInt(value);
  do {
    for (let round = 0n; round < 6n; round++) {
      const word = mix(key + round);
      x = BigInt.asUintN(bits, x * (word | 1n) + (word >> 32n));
      x ^= x >> BigInt((bits + 1) >> 1);
    }
  } while (x >= size);
  return Number(x);
}

/** One answer, however it was spelt; of the listed blanks JavaScript's \s lacks only U+0085. */
export function tidy(text, fold = 'case') {
  const whole = text.normalize();
  const folded = fold === 'case' ? whole.toUpperCase().toLowerCase().normalize() : whole;
  return folded.replace(/[\s\x85]+/g, ' ').replace(/^ | $/g, '');
}

const hashed = async (text) => new Coins(await sha256(utf8(text))).word();

export const textCode = async (text) => hashed(tidy(text) || refuse('bad-answer', 'only blanks'));

function cells({ k, seed, hashes, width, permuted, codes }, value, cohort) {
  const first = mix(BigInt(seed)) + BigInt(cohort * (hashes ?? 1));
  const cell = (i) => {
    const key = mix(first + BigInt(i));
    if (permuted) return permute(value, k, key) % width;
    const code = k ? codes?.[value] ?? mix(BigInt(value)) : value;
    return Number((mix(code ^ key) * BigInt(width)) >> 64n);
  };
  return hashes ? range(hashes).map(cell) : cell(0);
}

function keepOrDraw(kept, size, keep, coins) {
  const other = coins.choice(size);
  return coins.below(keep) ? kept : other;
}

function unary(size, ones, one, zero, coins) {
  const set = new Set([ones].flat());
  return range(size).filter((v) => coins.below(set.has(v) ? one : zero));
}

const flip = (values, ones, keep, coins) =>
  values.filter((v) => coins.below(keep) === ones.includes(v));

const parity = (x) => x.toString(2).replaceAll('0', '').length % 2;

function sign(column, rows, keep, coins) {
  const j = coins.choice(rows);
  const bit = parity(j & column);
  return little(2 * j + (coins.below(keep) ? bit : 1 - bit), 2 * rows);
}

const rowsFor = (k) => 2 ** (k - 1).toString(2).length;

function sample(size, count, coins) {
  const values = range(size);
  for (let i = 0; i < count; i++) {
    const j = i + coins.choice(size - i);
    [values[i], values[j]] = [values[j], values[i]];
  }
  return values.slice(0, count);
}

function laplace({ decay: a, steps, reach }) {
  const exact = (y) =>
    (a ** BigInt(y) * (y === steps + reach ? W : W - a)) / (W ** BigInt(y - 1) * (W + a));
  const power = BigInt(steps);
  const weights = range(steps + 2 * reach + 1).map((byte) => {
    const y = byte - reach;
    if (Math.abs(2 * y - steps) < 2) return 0n;
    return y > 0 ? exact(y) : (exact(steps - y) * W ** power) / a ** power;
  });
  const left = weights.reduce((rest, weight) => rest - weight, W);
  const far = steps % 2 ? (left * a + W + a - 1n) / (W + a) : 0n;
  weights[reach + ((steps + 1) >> 1)] = far;
  weights[reach + (steps >> 1)] = left - far;
  return weights;
}

// ---- mechanisms

const INDEX = {
  instant: ({ k, keep }, begun, kept, coins) => little(keepOrDraw(kept, k, keep, coins), k),
};

const BITS = {
  instant: ({ k, one, zero }, begun, kept, coins) => pack(k, unary(k, kept, one, zero, coins)),
};

const CHAINED_BITS = {
  ...BITS,
  memoise: (p, begun, key, coins) =>
    unary(p.k, key, p.permanent_one, p.permanent_zero, coins),
};

const HASHING = {
  begin: ({ modulus }, coins) => range(3).map(() => coins.choice(modulus)),
  key({ g, modulus }, begun, value) {
    const [a, b, c, v, p] = [...begun, value, modulus].map(BigInt);
    return Number(((((a * v + b) * v + c) % p) * BigInt(g)) / p);
  },
  instant: ({ g, keep }, begun, kept, coins) =>
    join(...begun.map((x) => little(x, 2 ** 32)), little(keepOrDraw(kept, g, keep, coins), g)),
};

const CHAINED_HASHING = {
  ...HASHING,
  memoise: (p, begun, key, coins) => keepOrDraw(key, p.g, p.permanent_keep, coins),
};

const SIGNS = {
  instant: ({ k, keep }, begun, kept, coins) => sign(kept, rowsFor(k), keep, coins),
};

const COHORTS = ({ instant }) => ({
  begin: ({ cohorts }, coins) => coins.choice(cohorts),
  memoise: (p, begun, key) => cells(p, key, begun),
  instant: (p, begun, kept, coins) =>
    join(little(begun, p.cohorts), instant({ ...p, k: p.width }, begun, kept, coins)),
});

const ASKED = {
  begin: ({ k, w }, coins) => sample(k, w, coins).sort((x, y) => x - y),
  key: ({ k }, begun, value) => (begun.includes(value) ? value : k),
  memoise: ({ keep }, begun, key, coins) => flip(begun, [key], keep, coins),
  instant: ({ k }, begun, kept) => join(pack(k, begun), pack(k, kept)),
};

const BIT = {
  instant: ({ keep }, begun, kept, coins) => little(coins.below(keep) ? kept : 1 - kept, 2),
};

const SUBSET = {
  instant({ k, omega, keep }, begun, kept, coins) {
    const values = sample(k - 1, omega, coins).map((i) => (i < kept ? i : i + 1));
    if (coins.below(keep)) values[omega - 1] = kept;
    return pack(k, values);
  },
};

const HADAMARD = {
  instant({ k, block, seed, keep }, begun, kept, coins) {
    const blocks = Math.ceil(k / (block - 1));
    const place = dealt(kept, k, seed);
    const row = (place % (block - 1)) + 1;
    const i = coins.choice(block);
    const anywhere = coins.choice(blocks) * block + i;
    const right = i ^ (parity(i & row) * (row & -row));
    const own = Math.floor(place / (block - 1)) * block + right;
    return little(coins.below(keep) ? own : anywhere, blocks * block);
  },
};

const HISTOGRAM = {
  instant(p, begun, kept, coins) {
    const bytes = Uint8Array.from(range(p.k), () => {
      let left = coins.word();
      return p.weights.findIndex((weight) => (left -= weight) < 0n);
    });
    bytes[kept] = 2 * p.reach + p.steps - bytes[kept];
    return bytes;
  },
};

// name: design, thresholds, steps
const MECHANISMS = new Map(Object.entries({
  brr: ['', 'keep', BIT],
  grr: ['', 'keep', INDEX],
  sue: ['', 'one zero', BITS],
  oue: ['', 'one zero', BITS],
  ue: ['', 'one zero', BITS],
  the: ['theta', 'one zero', BITS],
  ss: ['omega', 'keep', SUBSET],
  blh: ['g modulus', 'keep', HASHING],
  olh: ['g modulus', 'keep', HASHING],
  hr: ['block seed', 'keep', HADAMARD],
  hrr: ['', 'keep', SIGNS],
  shist: ['b seed', 'keep', {
    instant: ({ b, seed, keep }, begun, kept, coins) => sign(dealt(kept, b, seed), b, keep, coins),
  }],
  she: ['steps reach', 'decay', HISTOGRAM],
  cms: ['cohorts width seed', 'one zero', COHORTS(BITS)],
  hcms: ['cohorts width seed', 'keep', COHORTS(SIGNS)],
  orr: ['cohorts width seed permuted', 'keep', COHORTS(INDEX)],
  orappor: ['cohorts width hashes seed permuted', 'one zero', COHORTS(BITS)],
  rappor: ['cohorts width hashes seed', 'permanent one zero', {
    ...COHORTS(BITS),
    memoise: (p, begun, key, coins) =>
      flip(range(p.width), cells(p, key, begun), p.permanent, coins),
  }],
  basicrappor: ['', 'permanent one zero', {
    ...BITS,
    memoise: ({ k, permanent }, begun, key, coins) => flip(range(k), [key], permanent, coins),
  }],
  lgrr: ['', 'permanent_keep keep', {
    ...INDEX,
    memoise: (p, begun, key, coins) => keepOrDraw(key, p.k, p.permanent_keep, coins),
  }],
  lsue: ['', 'permanent_one permanent_zero one zero', CHAINED_BITS],
  loue: ['', 'permanent_one permanent_zero one zero', CHAINED_BITS],
  lsoue: ['', 'permanent_one permanent_zero one zero', CHAINED_BITS],
  losue: ['', 'permanent_one permanent_zero one zero', CHAINED_BITS],
  lblh: ['g modulus', 'permanent_keep keep', CHAINED_HASHING],
  lolh: ['g modulus', 'permanent_keep keep', CHAINED_HASHING],
  dbitflip: ['w', 'keep', ASKED],
  dbitflippm: ['w', 'keep', ASKED],
}));

// ---- manifests: not trusted

const isInt = (x, low, high) => Number.isInteger(x) && low <= x && x <= high;
const isText = (x) => typeof x === 'string' && !/\p{Cs}/u.test(x);
const isLabel = (x) => isText(x) || typeof x === 'boolean' || Number.isSafeInteger(x);
const isList = (x, test) => Array.isArray(x) && x.every(test);
const isThreshold = (x) => isText(x) && /^[1-9]\d{0,19}$/.test(x) && BigInt(x) < W;
const isEpsilon = (x) => 2 ** -20 <= x && x <= 32 && Number.isFinite(x);
const differ = (list, by) => new Set(list.map(by)).size === list.length;
const allOf = (names, test) => Object.fromEntries(names.map((name) => [name, test]));

const bad = (where, what) => refuse('bad-manifest', `${where}: "${what}" is not understood`);

function check(where, object, rules) {
  for (const name of Object.keys({ ...rules, ...object })) {
    const both = [rules, object].every((one) => Object.hasOwn(Object(one), name));
    if (!both || !rules[name](object[name], object, name)) bad(where, name);
  }
}

const spell = (x, yes, no) => (x === true ? yes : x === false ? no : x);
const read = (label) => String(spell(label, 'True', 'False'));

const isLabels = (x) => isList(x, isLabel) && differ(x, read)
  && differ(x, (label) => spell(label, 1, 0));

function limits(k, { mechanism, epsilon, design: { cohorts, hashes, modulus, steps } }) {
  const rows = rowsFor(k);
  return {
    theta: [512, 1024], omega: [1, k - 1], w: [1, k], modulus: [k, 2 ** 31 - 1],
    g: [2, /blh/.test(mechanism) ? 2 : Math.min(modulus, 65536)],
    block: [2, 2 ** 31], b: [rows, Math.min(64 * rows, 2 ** 31)],
    seed: [cohorts ? 0 : -1, 2 ** 32 - 1],
    steps: [1, 16], reach: [0, Math.min((255 - steps) / 2, (80 * steps) / epsilon - steps)],
    cohorts: [1, 65536], width: [2, 65536], hashes: [1, 16],
    permuted: [0, k && !(hashes > 1) ? 1 : 0],
  };
}

function isPrime(x) {
  for (let d = 2; d * d <= x; d++) if (x % d === 0) return false;
  return true;
}

const SORTS = { b: (x) => !(x & (x - 1)), modulus: isPrime };
SORTS.block = SORTS.b;

/** The integers of a spec; k is 0 for texts. */
function parameters(where, spec) {
  const name = spec?.mechanism;
  const family = MECHANISMS.get(name) ?? bad(where, `mechanism ${name}`);
  const [design, thresholds] = family.map((names) => String(names).match(/\w+/g) ?? []);
  const { text, labels, size, other } = Object(spec.domain);
  const k = text === true ? 0 : labels?.length ?? size;
  check(where, spec, {
    deniable: (x) => x === 1,
    ...allOf(name[0] === 'l' ? ['epsilon_inf', 'epsilon_1'] : ['epsilon'], isEpsilon),
    mechanism: () => name !== 'brr' || k === 2,
    domain: (x) => (k === 0 ? design.includes('cohorts') : isInt(k, 2, 2 ** 31 - 2))
      && /^(labels(,other)?|size|text)$/.test(Object.keys(x).sort())
      && (!labels || isLabels(labels)) && (other === undefined || labels.includes(other)),
    ...allOf(['design', 'thresholds'], Boolean),
  });
  const range = limits(k, spec);
  check(where, spec.design, allOf(design, (x, all, name) =>
    isInt(x, ...range[name]) && (SORTS[name]?.(x) ?? true)));
  check(where, spec.thresholds, allOf(thresholds, isThreshold));
  const p = { ...spec.design, k };
  for (const name of thresholds) p[name] = BigInt(spec.thresholds[name]);
  if (p.decay) p.weights = laplace(p);
  if (!honest(spec, p)) refuse('broken-promise', `${where}: its integers break its epsilon`);
  return p;
}

/** As many for every value. */
function wordsOf(p, { begin, memoise, instant }, key) {
  const coins = new Coins();
  const begun = begin(p, coins);
  const first = coins.used;
  const kept = memoise(p, begun, key, coins);
  const second = coins.used;
  instant(p, begun, kept, coins);
  return { coinWords: coins.used, words: [first, second - first, coins.used - second] };
}

const same = (p, begun, value) => value;

export async function mechanism(spec, where = 'spec') {
  const p = parameters(where, spec);
  const { labels } = spec.domain;
  const codes = (p.cohorts && labels)?.map((label) => hashed(read(label)));
  if (codes) p.codes = await Promise.all(codes);
  const [, thresholds, own] = MECHANISMS.get(spec.mechanism);
  const steps = { begin: () => 0, key: same, memoise: same, ...own };
  const plain = p.k ? Number : BigInt;
  const key = (begun, value) =>
    (p.k ? isInt(value, 0, p.k - 1) : typeof value === 'bigint')
      ? steps.key(p, begun, value) : refuse('bad-answer', 'no index');
  const report = (value, coins) => {
    const begun = steps.begin(p, coins);
    return steps.instant(p, begun, steps.memoise(p, begun, key(begun, value), coins), coins);
  };
  const only = (bytes, step, ...more) => drawn(bytes, (coins) => steps[step](p, ...more, coins));
  return {
    name: spec.mechanism,
    p,
    ...wordsOf(p, steps, plain(0)),
    twoSteps: /permanent/.test(thresholds) || spec.mechanism === 'dbitflippm',
    keyIsValue: steps.key === same,
    report: (value, bytes) => drawn(bytes, (coins) => report(value, coins)),
    begin: (bytes) => only(bytes, 'begin'),
    key: (begun, value) => BigInt(key(begun, value)),
    memoise: (begun, key, bytes) => only(bytes, 'memoise', begun, plain(key)),
    instant: (begun, kept, bytes) => only(bytes, 'instant', begun, kept),
  };
}

export const report = async (spec, value, bytes) => (await mechanism(spec)).report(value, bytes);

const binNames = (edges) =>
  `below ${edges.map((x) => [0, 0].fill(Number(x.toPrecision(12)))).join(' to ')} or more`;

const KINDS = {
  choice: { mechanism: ({ domain }) => domain.labels },
  'yes/no': { mechanism: ({ domain }) => String(domain.labels) === 'yes,no' },
  number: {
    edges: (x) => isList(x, (edge, i) => Number.isFinite(edge) && !(edge <= x[i - 1])),
    mechanism: ({ domain }, { edges }) =>
      isInt(edges.length, 1, 1000) && domain.labels?.length === edges.length + 1
      && String(domain.labels).replace(/-?\d[^, ]*/g, Number) === binNames(edges),
  },
  text: { candidates: (x) => isList(x, isText), mechanism: ({ domain }) => domain.text },
};

async function checkQuestion(question) {
  const where = `question "${question?.name}"`;
  const made = await mechanism(question?.mechanism, where);
  check(where, question, {
    kind: (x) => isText(x) && Object.hasOwn(KINDS, x),
    name: (x) => isText(x) && /^[a-z][a-z0-9_]{0,31}$/.test(x),
    ask: isText,
    ...KINDS[question.kind],
  });
  return made;
}

async function understood(bytes) {
  const strict = { fatal: true, ignoreBOM: true };
  const manifest = JSON.parse(new TextDecoder('utf-8', strict).decode(bytes));
  check('manifest', manifest, {
    deniable: (x) => x === 1,
    ...allOf(['title', 'about'], isText),
    epsilon: isEpsilon,
    rounds: (x) => isInt(x, 1, 65535),
    changes: (x, { rounds }) => isInt(x, 0, rounds - 1),
    divide: (x, { rounds }) => x === 'split' || (x === 'sampled' && rounds === 1),
    questions: (x) => isList(x, Boolean) && isInt(x.length, 1, 256)
      && differ(x, (question) => question.name),
  });
  const mechanisms = await Promise.all(manifest.questions.map(checkQuestion));
  if (!affordable(manifest, mechanisms)) {
    refuse('broken-promise', `the questions reveal more than epsilon ${manifest.epsilon}`);
  }
  return { manifest, mechanisms };
}

/** No message repeats an answer. */
async function encode({ name, kind, edges, mechanism: { domain } }, answers) {
  const must = (be) => refuse('bad-answer', `the answer to "${name}" must be ${be}`);
  const answer = Object.hasOwn(answers, name) ? answers[name] : must('given');
  if (kind === 'text') {
    return isText(answer) && tidy(answer) ? textCode(answer) : must('well-formed text, not blank');
  }
  if (kind === 'number') {
    if (!Number.isFinite(answer)) must('a finite number');
    return edges.filter((edge) => edge <= answer).length;
  }
  const { labels, other } = domain;
  const said = kind === 'yes/no' ? spell(answer, 'yes', 'no') : answer;
  if (labels.includes(said)) return labels.indexOf(said);
  return isLabel(said) && other !== undefined ? labels.indexOf(other) : must(`one of ${labels}`);
}

// ---- memos

async function recalled(secret, label, number, words) {
  const { subtle } = crypto;
  const hash = { name: 'HMAC', hash: 'SHA-256' };
  const mac = await subtle.importKey('raw', unhex(secret), hash, false, ['sign']);
  const derived = await subtle.sign('HMAC', mac, utf8(`deniable memo ${label}`));
  const key = await subtle.importKey('raw', derived, 'AES-CTR', false, ['encrypt']);
  const counter = new Uint8Array(16);
  new DataView(counter.buffer).setBigUint64(0, number);
  const cipher = { name: 'AES-CTR', counter, length: 64 };
  return new Uint8Array(await subtle.encrypt(cipher, key, new Uint8Array(8 * words)));
}

/** The row of an answer, and the keys in use once it is sent. */
async function remembered(m, { secret, keys }, most, value, bytes) {
  const used = keys.map(BigInt);
  const begun = m.begin(await recalled(secret, 'begin', 0n, m.words[0]));
  const own = m.key(begun, value);
  if (!used.includes(own) && used.length < most) {
    used.push(own);
    used.sort((x, y) => (x < y ? -1 : 1));
  }
  // Its word is always drawn.
  const other = used[new Coins(bytes).choice(used.length)];
  const key = used.includes(own) ? own : other;
  const kept = m.memoise(begun, key, await recalled(secret, 'keep', key, m.words[1]));
  return { row: m.instant(begun, kept, bytes.subarray(8)), keys: used.map(String) };
}

// ---- the book

/** A collection at an address where another was answered is another budget. */
function agreed({ digest, another }, entry) {
  const sent = Object.keys(entry).filter((name) =>
    Object.values(entry[name].rounds).some(({ body }) => body));
  if (!sent.length || sent.includes(digest) || another === digest) return;
  const spent = sent.reduce((sum, name) => sum + entry[name].epsilon, 0);
  const words = `another collection was answered here, with epsilon ${spent}; this is ${digest}`;
  throw Object.assign(new DeniableError('changed', words), { digest, spent });
}

/** Changes what the book says of this collection, in one turn. */
async function noted(collection, change) {
  const { book, address, digest, manifest: { epsilon } } = collection;
  let own;
  const turn = (entry) => {
    agreed(collection, entry);
    own = entry[digest] ??= { epsilon, memos: {}, rounds: {} };
    change(own);
    return entry;
  };
  try {
    await book.update(address, turn);
    return own ?? refuse('memo', 'the book keeps nothing');
  } catch (error) {
    if (error instanceof DeniableError) throw error;
    return refuse('memo', `nothing is sent without the book: ${error}`);
  }
}

/** For who wants none: it is forgotten with the sheet. */
const fleeting = (entry = {}) => ({
  update: async (_, change) => (entry = change(structuredClone(entry))),
});

// ---- submissions

const remembers = (m, { rounds }) => m.twoSteps && rounds > 1;
const eaten = (m, manifest) => (remembers(m, manifest) ? 1 + m.words[2] : m.coinWords);

/** Coins and secrets that are not in the book yet. */
function draw({ manifest, mechanisms }, round, first, { memos, rounds }) {
  const kept = (rounds[round] ??= { words: first });
  if (kept.body) refuse('answered', 'only what was sent in this round can be sent again');
  mechanisms.forEach((m, place) => {
    if (!remembers(m, manifest)) return;
    const { secret, keys } = (memos[place] ??= { secret: hex(secureBytes(32)), keys: [] });
    if (!/^[0-9a-f]{64}$/.test(secret) || keys.length > manifest.changes + 1) throw 'it is damaged';
  });
  const words = mechanisms.map((m) => eaten(m, manifest));
  const all = manifest.divide === 'sampled'
    ? 1 + Math.max(...words) : words.reduce((sum, more) => sum + more, 0);
  const missing = 8 * all - kept.words.length / 2;
  if (missing) kept.words += hex(secureBytes(missing));
  kept.id ??= hex(secureBytes(16));
}

/** What would be sent; and for each memo how it was, and its keys once this is sent. */
async function fill({ manifest, mechanisms, digest }, places, values, round, { memos, rounds }) {
  const { words, id } = rounds[round];
  const coins = unhex(words);
  let at = manifest.divide === 'sampled' ? 8 : 0;
  const rows = [];
  const marks = [];
  for (const [i, place] of places.entries()) {
    const m = mechanisms[place];
    const bytes = coins.subarray(at, (at += 8 * eaten(m, manifest)));
    const memo = remembers(m, manifest) && memos[place];
    const { row, keys } = memo
      ? await remembered(m, memo, manifest.changes + 1, values[i], bytes)
      : { row: m.report(values[i], bytes) };
    if (memo) marks.push({ place, keys, was: JSON.stringify(memo) });
    rows.push([manifest.questions[place].name, hex(row)]);
  }
  const reports = Object.fromEntries(rows.sort());
  const body = JSON.stringify({ collection: digest, id, reports, round });
  return { made: { body, id, reports }, marks };
}

/** Keys and body together, before the first byte is sent. */
function record({ made: { body }, marks }, round, { memos, rounds }) {
  const kept = rounds[round]?.body;
  if (kept === body) return;
  if (kept) refuse('answered', 'this round was answered meanwhile');
  for (const { place, keys, was } of marks) {
    if (JSON.stringify(memos[place]) !== was) refuse('prepared', 'the memo changed: prepare again');
    memos[place].keys = keys;
  }
  rounds[round] = { body };
}

async function begin(shared, round = 1) {
  const collection = { ...shared, book: shared.book ?? fleeting() };
  const { divide, rounds, questions: all } = collection.manifest;
  if (!isInt(round, 1, rounds)) refuse('bad-round', `the round must be 1..${rounds}`);
  // A question is drawn before there is any answer, and never again.
  const { words: first, body } = (await noted(collection, (own) => {
    own.rounds[round] ??= { words: divide === 'sampled' ? hex(secureBytes(8)) : '' };
  })).rounds[round];
  const asked = first && new Coins(unhex(first)).choice(all.length);
  const places = body ? [] : [...all.keys()].filter((i) => divide === 'split' || i === asked);
  let ready;

  const sheet = {
    questions: places.map((place) => all[place]),
    body,
    async prepare(answers) {
      const values = await Promise.all(sheet.questions.map((question) => encode(question, answers)));
      const own = await noted(collection, (own) => draw(collection, round, first, own));
      ready = await fill(collection, places, values, round, own);
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
async function answer(collection, answers, round) {
  const sheet = await begin(collection, round);
  try {
    for (;;) {
      await sheet.prepare(answers);
      try {
        return await sheet.send();
      } catch (error) {
        if (error.type !== 'prepared') throw error;
      }
    }
  } catch (error) {
    throw sheet.body ? Object.assign(error, { sheet }) : error;
  }
}

// ---- the network

const PRIVATE = { cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' };
/** After these the same is sent again. */
const LATER = [408, 429, 500, 502, 503, 504];

/** An answer that has not ended after 30 seconds is none. */
const ask = (fetch, url, more) =>
  fetch(url, { ...PRIVATE, ...more, signal: AbortSignal.timeout?.(30_000) }).catch(() => null);

/** A server cannot say what only this client says: that nothing was sent, for example. */
const OTHERS = /^(?!bad-|broken|too-much|changed|answered|prepared|memo|coins|no-answer)[a-z-]{1,40}$/;

async function failure(response) {
  if (!response) return new DeniableError('no-answer', 'the collector does not answer');
  const { type, detail } = Object(await response.json().catch(() => null));
  const word = isText(type) ? type.replace('urn:deniable:', '') : '';
  const words = isText(detail) ? detail : `the collector answered ${response.status || 'elsewhere'}`;
  const plain = words.slice(0, 300).replace(/\p{C}/gu, '?');
  return new DeniableError(OTHERS.test(word) ? word : 'unexpected', plain);
}

async function post({ to, key, fetch, tries, pause }, body) {
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  for (let left = tries; ; left--, pause *= 2) {
    // Who follows a redirect asks for a page, and takes it for a receipt.
    const response = await ask(fetch, to, { method: 'POST', headers, body, redirect: 'manual' });
    const status = response?.status ?? 503;
    if (status === 200 || status === 201) return { counted: status === 201 };
    const wait = Math.max(pause, 1000 * response?.headers.get('retry-after') || 0);
    if (!LATER.includes(status) || left <= 1 || wait > 60_000) throw await failure(response);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function fetched(fetch, url) {
  const response = await ask(fetch, url);
  if (response && !response.ok) throw await failure(response);
  const bytes = await response?.arrayBuffer().catch(() => null); // null: it broke off
  if (!bytes) throw await failure();
  return bytes;
}

async function load(source, options = {}) {
  const { fetch = globalThis.fetch, key, another, maxEpsilon = 8, tries = 6, pause = 500 } = options;
  const { book = 'indexedDB' in globalThis ? browserBook : undefined } = options;
  const absolute = (place) => new URL(place, globalThis.location?.href);
  const url = (typeof source === 'string' || source instanceof URL) && absolute(source);
  const bytes = new Uint8Array(url ? await fetched(fetch, url) : source.bytes ?? source);
  if (bytes.length > 2 ** 24) refuse('bad-manifest', 'it is longer than 16 MiB');
  const digest = hex(await sha256(bytes));
  if (digest !== (options.digest ?? digest)) refuse('other-collection', `the digest is ${digest}`);
  const { manifest, mechanisms } = await understood(bytes).catch((error) => {
    throw error instanceof DeniableError ? error : new DeniableError('bad-manifest', error.message);
  });
  const { epsilon } = manifest;
  if (!(epsilon <= maxEpsilon)) refuse('too-much', `epsilon ${epsilon} is above ${maxEpsilon}`);
  if (!book && (book !== null || mechanisms.some((m) => remembers(m, manifest)))) {
    refuse('memo', 'there is no book to remember in');
  }
  const to = options.to ? absolute(options.to) : url ? new URL('submissions', url) : undefined;
  const address = to ? String(new URL('.', to)) : '';
  const collection = {
    manifest, mechanisms, digest, book, address, another, to, key, fetch, tries, pause,
  };
  return {
    manifest,
    digest,
    begin: (round) => begin(collection, round),
    answer: (answers, round) => answer(collection, answers, round),
  };
}

export const Client = { load };
