// Rows of Hadamard matrices: hr, hrr, shist.
import { W, little, log, register } from './core.js';
import { mixture } from './direct.js';
import { rank } from './permuted.js';

const parity = (x) => x.toString(2).replaceAll('0', '').length % 2;
const isPower = (x) => !(x & (x - 1));
const rowsFor = (k) => 2 ** (k - 1).toString(2).length;
const dealt = (value, size, seed) => (seed < 0 ? value : rank(value, size, BigInt(seed) << 32n));
const SEED = { seed: () => [-1, 2 ** 32 - 1] };

/** A random row of the matrix, and the bit of the value's column in it, or the other bit. */
const signs = (rows, column, design) => ({
  design,
  thresholds: ['keep'],
  words: () => 2,
  row(p, value, coins) {
    const j = coins.choice(rows(p));
    const bit = parity(j & column(p, value));
    return little(2 * j + (coins.below(p.keep) ? bit : 1 - bit), 2 * rows(p));
  },
  ratio: ({ keep }) => log(keep, W - keep),
  cells: (p) => 2 * rows(p),
});

export const SIGNS = signs(({ k }) => rowsFor(k), (p, value) => value);

const blocks = ({ k, block }) => Math.ceil(k / (block - 1));

register({
  hrr: SIGNS,
  shist: signs(({ b }) => b, ({ b, seed }, value) => dealt(value, b, seed), {
    b: ({ k }) => [rowsFor(k), Math.min(64 * rowsFor(k), 2 ** 31), isPower],
    ...SEED,
  }),
  hr: {
    design: { block: () => [2, 2 ** 31, isPower], ...SEED },
    thresholds: ['keep'],
    words: () => 3,
    row(p, value, coins) {
      const { k, block, seed, keep } = p;
      const place = dealt(value, k, seed);
      const row = (place % (block - 1)) + 1;
      const i = coins.choice(block);
      const anywhere = coins.choice(blocks(p)) * block + i;
      const right = i ^ (parity(i & row) * (row & -row));
      const own = Math.floor(place / (block - 1)) * block + right;
      return little(coins.below(keep) ? own : anywhere, blocks(p) * block);
    },
    ratio: (p) => mixture(W * p.keep, blocks(p), 2n),
    cells: (p) => blocks(p) * p.block,
  },
});
