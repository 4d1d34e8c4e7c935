// Devices that remember: a permanent draw for each key, kept for ever, and reports drawn from it.
// docs/memo.md specifies the derivation.
import { Coins, W, drawn, fresh, little, log, range, register, unhex, utf8 } from './core.js';
import { INDEX, keepOrDraw, mixture } from './direct.js';
import { cellOf, drawHash, hashDesign, named } from './hashing.js';
import { BITS, SET, bitRatio, bits, pack, sample } from './sets.js';
import { HASHES } from './sketches.js';
import { cells, cohorts } from './text.js';

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

/** The memo of a device, or a new one. */
function memo(kept, most) {
  const { secret, keys } = kept ?? { secret: fresh(32), keys: [] };
  if (!/^[0-9a-f]{64}$/.test(secret) || keys.length > most) throw Error('it is damaged');
  return { secret, keys };
}

/** The row of an answer, and the keys in use once it is sent. */
async function report(p, { parts, begin, key, memoise, instant }, { secret, keys }, most, value, bytes) {
  const [first, second, third] = parts(p);
  const used = keys.map(BigInt);
  const begun = drawn(await recalled(secret, 'begin', 0n, first), first, (coins) => begin(p, coins));
  const own = BigInt(key(p, begun, value));
  if (!used.includes(own) && used.length < most) {
    used.push(own);
    used.sort((x, y) => (x < y ? -1 : 1));
  }
  // Its word is always drawn.
  const other = used[new Coins(bytes).choice(used.length)];
  const found = used.includes(own) ? own : other;
  const draws = await recalled(secret, 'keep', found, second);
  const kept = drawn(draws, second, (coins) => memoise(p, begun, p.k ? Number(found) : found, coins));
  return { row: drawn(bytes.subarray(8), third, (coins) => instant(p, begun, kept, coins)), keys: used.map(String) };
}

const same = (p, begun, value) => value;

/**
 * A family in steps: `begin` is drawn before there is an answer, `memoise` once for each key of a
 * value, `instant` for every report. `parts` are the words of each.
 */
const twice = ({ parts, begin = () => 0, key = same, memoise, instant, ...family }) => {
  const steps = { parts, begin, key, memoise, instant };
  return {
    ...family,
    steps,
    words: (p) => parts(p).reduce((x, y) => x + y),
    row(p, value, coins) {
      const begun = begin(p, coins);
      return instant(p, begun, memoise(p, begun, key(p, begun, value), coins), coins);
    },
    again: (p) => ({
      memo,
      keyIsValue: key === same,
      words: 1 + parts(p)[2],
      report: (...given) => report(p, steps, ...given),
    }),
  };
};

const BUDGETS = { budgets: ['epsilon_inf', 'epsilon_1'] };
const flip = (values, ones, keep, coins) =>
  values.filter((v) => coins.below(keep) === ones.includes(v));

/** How often of W^2 a bit is set whose permanent one is set `first` of W times. */
const share = ({ one, zero }, first) => first * one + (W - first) * zero;

/** Bits of bits: the permanent ones are set `own` or `other` times. */
const bitsTwice = (thresholds, own, other, memoise) => ({
  ...SET,
  thresholds: [...thresholds, 'one', 'zero'],
  parts: ({ k }) => [0, k, k],
  memoise,
  instant: ({ k, one, zero }, begun, kept, coins) => pack(k, bits(k, kept, one, zero, coins)),
  ratio: (p) => bitRatio(share(p, own(p)), share(p, other(p))),
  lasting: (p) => bitRatio(W * own(p), W * other(p)),
});

const BASIC = bitsTwice(['permanent'], ({ permanent }) => permanent, ({ permanent }) => W - permanent,
  ({ k, permanent }, begun, key, coins) => flip(range(k), [key].flat(), permanent, coins));
const CHAINED = twice({
  ...bitsTwice(['permanent_one', 'permanent_zero'], (p) => p.permanent_one, (p) => p.permanent_zero,
    (p, begun, key, coins) => bits(p.k, [key], p.permanent_one, p.permanent_zero, coins)),
  ...BUDGETS,
});

/** Keeping what was kept, among `n` outcomes. */
const indexTwice = (n) => ({
  ...BUDGETS,
  thresholds: ['permanent_keep', 'keep'],
  memoise: (p, begun, key, coins) => keepOrDraw(key, n(p), p.permanent_keep, coins),
  ratio: (p) => mixture(p.permanent_keep * p.keep, n(p)),
  lasting: (p) => mixture(W * p.permanent_keep, n(p)),
});

const hashingTwice = (most) => twice({
  ...indexTwice(({ g }) => g),
  design: hashDesign(most),
  parts: () => [3, 2, 2],
  begin: drawHash,
  key: cellOf,
  instant: ({ g, keep }, hash, kept, coins) => named(hash, keepOrDraw(kept, g, keep, coins), g),
});

const ASKED = {
  design: { w: ({ k }) => [1, k] },
  thresholds: ['keep'],
  parts: ({ w }) => [w, w, 0],
  begin: ({ k, w }, coins) => sample(k, w, coins).sort((x, y) => x - y),
  key: ({ k }, begun, value) => (begun.includes(value) ? value : k),
  memoise: ({ keep }, begun, key, coins) => flip(begun, [key], keep, coins),
  instant: ({ k }, begun, kept) => [...pack(k, begun), ...pack(k, kept)],
  ratio: ({ keep, w }) => Math.min(2, w) * log(keep, W - keep),
  cells: ({ k }) => 2 * k,
};

/** basicrappor about the cells of a cohort, which is drawn once and for all. */
const { row, ...rappor } = cohorts({ ...BASIC, words: BITS.words }, HASHES);
const inner = (p) => ({ ...p, k: p.width });

register({
  basicrappor: twice(BASIC),
  rappor: twice({
    ...rappor,
    parts: ({ width }) => [1, width, width],
    begin: (p, coins) => coins.choice(p.cohorts),
    memoise: (p, cohort, key, coins) => BASIC.memoise(inner(p), 0, cells(p, key, cohort), coins),
    instant: (p, cohort, kept, coins) =>
      [...little(cohort, p.cohorts), ...BASIC.instant(inner(p), 0, kept, coins)],
    lasting: (p) => p.hashes * BASIC.lasting(p),
  }),
  lgrr: twice({
    ...indexTwice(({ k }) => k),
    parts: () => [0, 2, 2],
    instant: (p, begun, kept, coins) => INDEX.row(p, kept, coins),
    says: INDEX.says,
  }),
  lsue: CHAINED,
  loue: CHAINED,
  lsoue: CHAINED,
  losue: CHAINED,
  lblh: hashingTwice(2),
  lolh: hashingTwice(65536),
  // Nothing is drawn later: without a memo it is drawn anew each time.
  dbitflip: { ...twice(ASKED), again: undefined },
  dbitflippm: twice(ASKED),
});
