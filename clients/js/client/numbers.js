// Numbers of a range, and their means: drr.
import { W, little, register } from './core.js';
import { INDEX, indexOf, keepOrDraw, mixture } from './direct.js';

export const GRID = 2 ** 32;
const isLimit = (x) => Number.isFinite(x) && Math.abs(x) <= 1e15;
const isWhole = (steps) => steps >= 1 - 1e-9 && steps <= GRID && Math.abs(steps - Math.round(steps)) <= 1e-9;

/** A number of 0..1 on the scale of the answers, as exactly as a thousandth of the range. */
export function placed({ lo, hi }, x) {
  const decimals = Math.min(Math.max(0, 3 - Math.ceil(Math.log10(hi - lo))), 100);
  return Number((lo + Math.min(Math.max(x, 0), 1) * (hi - lo)).toFixed(decimals));
}

const cellsOf = ({ ell, domain }) => ell + 1 + domain.optional;

register({
  drr: {
    takes: ({ lo }) => lo !== undefined,
    design: { ell: () => [1, 4096], fine: () => [1, 32], shown: ({ fine }) => [0, fine] },
    thresholds: ['keep'],
    words: () => 3,
    row(p, value, coins) {
      const { ell, fine, shown, keep } = p;
      const offset = coins.choice(2 ** fine);
      const own = value > GRID ? ell + 1
        : Math.floor((Math.floor((ell * value) / 2 ** (32 - fine)) + offset) / 2 ** fine);
      const cell = keepOrDraw(own, cellsOf(p), keep, coins);
      return little(cell * 2 ** shown + Math.floor(offset / 2 ** (fine - shown)), cellsOf(p) * 2 ** shown);
    },
    ratio: (p) => mixture(W * p.keep, cellsOf(p)),
    cells: (p) => cellsOf(p) * 2 ** p.shown,
    /** The numbers that the cell stands for behind its offset. */
    says({ ell, shown, domain }, row) {
      const found = indexOf(row);
      const cell = Math.floor(found / 2 ** shown);
      if (cell > ell) return 'no answer';
      const start = cell - (found % 2 ** shown) / 2 ** shown;
      return `${placed(domain, start / ell)} to ${placed(domain, (start + 1) / ell)}`;
    },
  },
}, {
  number: {
    keys: {
      lo: isLimit,
      hi: (x, { lo }) => isLimit(x) && x > lo && x - lo >= 2 ** -20 * Math.max(Math.abs(lo), Math.abs(x)),
      step: (x, { lo, hi }) => x === null || (isLimit(x) && x > 0 && isWhole((hi - lo) / x)),
      outside: (x) => x === 'clip' || x === 'refuse',
    },
    of: ({ lo, hi, step }) => ({ zero: 0, skip: GRID + 1, steps: step ? Math.round((hi - lo) / step) + 1 : undefined }),
    must: ({ lo, hi, outside }) => (outside === 'clip' ? 'a finite number' : `a number from ${lo} to ${hi}`),
    encode({ lo, hi, step, outside }, x) {
      if (!Number.isFinite(x) || (outside === 'refuse' && (x < lo || x > hi))) return -1;
      let a = Math.min(Math.max(x, lo), hi);
      if (step) a = lo + Math.floor((a - lo) / step + 0.5) * step;
      return Math.min(Math.floor(((a - lo) / (hi - lo)) * GRID + 0.5), GRID);
    },
  },
});
