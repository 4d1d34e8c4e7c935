// Any text; and answers that are hashed into the cells of a cohort: orr.
import { Coins, isInt, isText, little, range, register, sha256, tidy, utf8 } from './core.js';
import { INDEX } from './direct.js';

/** SplitMix64. */
export function mix(x) {
  x = BigInt.asUintN(64, x + 0x9e3779b97f4a7c15n);
  x = BigInt.asUintN(64, (x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
  x = BigInt.asUintN(64, (x ^ (x >> 27n)) * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

/** The cell of a value in a cohort; with several hashes, the list of its cells. */
export function cells({ k, seed, hashes, width, permute, codes }, value, cohort) {
  const first = mix(BigInt(seed)) + BigInt(cohort * (hashes ?? 1));
  const cell = (i) => {
    const key = mix(first + BigInt(i));
    if (permute) return permute(value, k, key) % width;
    const code = k ? codes?.[value] ?? mix(BigInt(value)) : value;
    return Number((mix(code ^ key) * BigInt(width)) >> 64n);
  };
  return hashes ? range(hashes).map(cell) : cell(0);
}

const code = async (bytes) => new Coins(await sha256(bytes)).word();
const SKIP = Uint8Array.of(255);

export const PERMUTED = { permuted: ({ k, hashes }) => [0, k && !(hashes > 1) ? 1 : 0] };

/** A mechanism about the cells of one cohort, which is drawn first. */
export const cohorts = ({ thresholds, words, row, ratio, cells: inside }, design) => ({
  takes: ({ k, fold }) => k || fold,
  design: {
    cohorts: () => [1, 65536], width: () => [2, 65536], seed: () => [0, 2 ** 32 - 1], ...design,
  },
  thresholds,
  /** What is hashed for answers that are listed. */
  async ready({ k, permuted, domain }) {
    if (permuted) return import('./permuted.js');
    const names = k ? await domain.form?.names(domain) : undefined;
    return { codes: names && await Promise.all([...names.map(utf8), SKIP].map(code)) };
  },
  words: (p) => 1 + words({ ...p, k: p.width }),
  row(p, value, coins) {
    const cohort = coins.choice(p.cohorts);
    const inner = row({ ...p, k: p.width }, cells(p, value, cohort), coins);
    return [...little(cohort, p.cohorts), ...inner];
  },
  ratio: (p) => (p.hashes ?? 1) * ratio({ ...p, k: p.width }),
  cells: (p) => p.cohorts * (1 + (inside?.({ ...p, k: p.width }) ?? p.width)),
});

register({ orr: cohorts(INDEX, PERMUTED) }, {
  text: {
    keys: { fold: (x) => x === 'case' || x === 'none', max_bytes: (x) => isInt(x, 1, 1024) },
    of: () => ({ zero: 0n, skip: code(SKIP) }),
    must: ({ max_bytes: most }) => `well-formed text of 1 to ${most} bytes`,
    encode({ fold, max_bytes: most }, x) {
      const bytes = isText(x) ? utf8(tidy(x, fold)) : [];
      return isInt(bytes.length, 1, most) ? code(bytes) : -1;
    },
  },
});
