// A set of answers: a bit for each (sue, oue, ue, the), or a subset of a fixed size (ss).
import { W, log, range, register } from './core.js';

/** A set of values as bits, in 1, 2, 4 or a multiple of 8 bytes. */
export function pack(size, values) {
  const least = Math.ceil(size / 8);
  const bytes = new Uint8Array(least > 4 ? (least + 7) & -8 : least === 3 ? 4 : least);
  for (const v of values) bytes[v >> 3] |= 1 << (v & 7);
  return bytes;
}

/** For each value a bit, whose threshold depends on whether it is among `ones`. */
export function bits(size, ones, one, zero, coins) {
  const set = new Set(ones);
  return range(size).filter((v) => coins.below(set.has(v) ? one : zero));
}

/** The ratio of two answers' bits, which are set `own` and `other` of W^2 times. */
export const bitRatio = (own, other) => log(own * (W * W - other), other * (W * W - own));

/** `count` of the values below `size`. */
export function sample(size, count, coins) {
  const values = range(size);
  for (let i = 0; i < count; i++) {
    const j = i + coins.choice(size - i);
    [values[i], values[j]] = [values[j], values[i]];
  }
  return values.slice(0, count);
}

export const SET = {
  says: (p, row, labels) => labels.filter((_, v) => row[v >> 3] & (1 << (v & 7))),
};

export const BITS = {
  ...SET,
  thresholds: ['one', 'zero'],
  words: ({ k }) => k,
  row: ({ k, one, zero }, value, coins) => pack(k, bits(k, [value].flat(), one, zero, coins)),
  ratio: ({ one, zero }) => bitRatio(W * one, W * zero),
};

register({
  sue: BITS,
  oue: BITS,
  ue: BITS,
  the: { ...BITS, design: { theta: () => [512, 1024] } },
  ss: {
    ...SET,
    design: { omega: ({ k }) => [1, k - 1] },
    thresholds: ['keep'],
    words: ({ omega }) => omega + 1,
    row({ k, omega, keep }, value, coins) {
      const values = sample(k - 1, omega, coins).map((i) => (i < value ? i : i + 1));
      if (coins.below(keep)) values[omega - 1] = value;
      return pack(k, values);
    },
    // Draws among k - 1 are not quite equally likely.
    ratio: ({ k, omega, keep }) => log(keep * BigInt(k - omega), (W - keep) * BigInt(omega))
      - 2 * Math.log1p((-omega * (k - 1)) / Number(W)),
  },
});
