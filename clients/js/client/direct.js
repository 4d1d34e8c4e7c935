// The answer itself, or another one: brr, grr.
import { W, little, log, register } from './core.js';

export function keepOrDraw(kept, size, keep, coins) {
  const other = coins.choice(size);
  return coins.below(keep) ? kept : other;
}

/** The ratio of keeping a value, `own` of W^2 times, or drawing among n. */
export function mixture(own, n, times = 1n) {
  const each = (W * W - own) * (W / BigInt(n));
  return log(own * W * times + each, each);
}

export const indexOf = (row) => row.reduce((sum, byte, i) => sum + byte * 256 ** i, 0);

/** An index; `chances` are how often of W^2 it comes from its own answer, and from each other one. */
export const INDEX = {
  thresholds: ['keep'],
  words: () => 2,
  row: ({ k, keep }, value, coins) => little(keepOrDraw(value, k, keep, coins), k),
  ratio: ({ k, keep }) => mixture(W * keep, k),
  says: (p, row, labels) => labels[indexOf(row)],
  chances({ k, keep }, row) {
    const start = (i) => (BigInt(i) * W + BigInt(k - 1)) / BigInt(k);
    const other = (W - keep) * (start(indexOf(row) + 1) - start(indexOf(row)));
    return [keep * W + other, other];
  },
};

register({
  brr: {
    ...INDEX,
    takes: ({ k }) => k === 2,
    words: () => 1,
    row: ({ keep }, value, coins) => little(coins.below(keep) ? value : 1 - value, 2),
    ratio: ({ keep }) => log(keep, W - keep),
    chances: ({ keep }) => [keep * W, (W - keep) * W],
  },
  grr: INDEX,
});
