// One branch is drawn by public weights, whatever the answers are; one of several questions: joint.
import { MECHANISMS, bad, check, isInt, little, made, refuse, register } from './core.js';
import { indexOf } from './direct.js';

const isBranches = (x) => Array.isArray(x) && isInt(x.length, 1, 4096)
  && x.every((branch) => isInt(branch?.weight, 1, 65536))
  && x.reduce((sum, { weight }) => sum + weight, 0) === 65536;
const headOf = ({ branches }) => (branches.length > 256 ? 2 : 1);
const longest = (branches, what) => Math.max(...branches.map((branch) => branch[what]));

/** The branch of a row, and the row of that branch. */
export const inside = (p, row) => [p.branches[indexOf(row.slice(0, headOf(p)))], row.slice(headOf(p))];

/** The branches of a leaf, with rules for their `keys`; the family `tells` what each `sees` of a value. */
export async function opened(where, leaf, keys, tells) {
  const branches = [];
  let sum = 0n;
  for (const branch of leaf.branches) {
    check(where, branch, { weight: Boolean, mechanism: Boolean, ...keys });
    const own = tells(branch, branches.length);
    const m = await made(where, own.domain, branch.mechanism);
    if (m.family.again) bad(where, 'mechanism');
    const bytes = m.report(own.domain.zero, new Uint8Array(8 * m.words)).length;
    const { words, cost, cells } = m;
    sum += BigInt(branch.weight);
    branches.push({ ...own, m, bytes, words, cost, cells, edge: sum << 48n });
  }
  return { branches, edges: branches.map(({ edge }) => edge) };
}

/** What all families have in common. */
export const DRAWN = {
  branches: { branches: isBranches },
  words: ({ branches }) => 1 + longest(branches, 'words'),
  /** Every branch draws as many words: those that it does not need are thrown away. */
  row({ branches, edges }, value, coins) {
    const end = coins.used + 1 + longest(branches, 'words');
    const place = coins.pick(edges);
    const { m: { family, p }, sees } = branches[place];
    const row = family.row(p, sees(value), coins);
    while (coins.used < end) coins.word();
    const head = little(place, branches.length);
    const whole = new Uint8Array(head.length + longest(branches, 'bytes'));
    whole.set(head);
    whole.set(row, head.length);
    return whole;
  },
  ratio: ({ branches }) => longest(branches, 'cost'),
  cells: ({ branches }) => branches.reduce((sum, { cells }) => sum + 1 + cells, 0),
};

register({
  joint: {
    ...DRAWN,
    takes: ({ parts }) => parts,
    async ready({ domain: { parts } }, leaf, where) {
      const names = Object.keys(parts);
      const found = await opened(where, leaf, {
        of: (of) => Array.isArray(of) && of.length && of.every((name) => names.includes(name)),
        mechanism: (x) => !MECHANISMS.get(x.name)?.asks,
      }, ({ of }) => {
        if (of.length > 1) refuse('unsupported', `${where}: branches of several questions are not known here`);
        const place = names.indexOf(of[0]);
        return { of, domain: parts[of], sees: (values) => values[place] };
      });
      if (new Set(found.branches.map(({ of }) => of[0])).size < names.length) bad(where, 'branches');
      return found;
    },
    asks: ({ branches, edges }, coins) => branches[coins.pick(edges)].of,
    says(p, row, labels) {
      const [{ m: { family, p: own } }, rest] = inside(p, row);
      return family.says?.(own, rest, labels);
    },
    chances(p, row) {
      const [{ m: { family, p: own } }, rest] = inside(p, row);
      return family.chances?.(own, rest);
    },
  },
});
