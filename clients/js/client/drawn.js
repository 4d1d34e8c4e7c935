// One of several questions, drawn by public weights whatever the answers are: joint.
import { W, MECHANISMS, bad, check, isInt, little, made, refuse, register } from './core.js';
import { indexOf } from './direct.js';

const isBranches = (x) => Array.isArray(x) && isInt(x.length, 1, 4096)
  && x.every((branch) => isInt(branch?.weight, 1, 65536))
  && x.reduce((sum, { weight }) => sum + weight, 0) === 65536;
const headOf = ({ branches }) => (branches.length > 256 ? 2 : 1);
const longest = (branches, what) => Math.max(...branches.map((branch) => branch[what]));

/** The branch of a row, and the row of that branch. */
const inside = (p, row) => [p.branches[indexOf(row.slice(0, headOf(p)))].m, row.slice(headOf(p))];

register({
  joint: {
    takes: ({ parts }) => parts,
    branches: { branches: isBranches },
    async ready({ domain: { parts } }, leaf, where) {
      const names = Object.keys(parts);
      const branches = [];
      let sum = 0n;
      for (const branch of leaf.branches) {
        check(where, branch, {
          weight: Boolean,
          of: (of) => Array.isArray(of) && of.length && of.every((name) => names.includes(name)),
          mechanism: (x) => !MECHANISMS.get(x.name)?.asks,
        });
        const { of, weight } = branch;
        if (of.length > 1) refuse('unsupported', `${where}: branches of several questions are not known here`);
        const domain = parts[of];
        const m = await made(where, domain, branch.mechanism);
        if (m.family.again) bad(where, 'mechanism');
        const bytes = m.report(domain.zero, new Uint8Array(8 * m.words)).length;
        sum += BigInt(weight);
        const { words, cost, cells } = m;
        branches.push({ of, m, bytes, words, cost, cells, place: names.indexOf(of[0]), edge: sum << 48n });
      }
      if (new Set(branches.map(({ place }) => place)).size < names.length) bad(where, 'branches');
      return { branches, edges: branches.map(({ edge }) => edge) };
    },
    words: ({ branches }) => 1 + longest(branches, 'words'),
    /** Every branch draws as many words: those that it does not need are thrown away. */
    row({ branches, edges }, values, coins) {
      const end = coins.used + 1 + longest(branches, 'words');
      const place = coins.pick(edges);
      const { m: { family, p }, place: question } = branches[place];
      const row = family.row(p, values[question], coins);
      while (coins.used < end) coins.word();
      const head = little(place, branches.length);
      const whole = new Uint8Array(head.length + longest(branches, 'bytes'));
      whole.set(head);
      whole.set(row, head.length);
      return whole;
    },
    ratio: ({ branches }) => longest(branches, 'cost'),
    cells: ({ branches }) => branches.reduce((sum, { cells }) => sum + 1 + cells, 0),
    asks: ({ branches, edges }, coins) => branches[coins.pick(edges)].of,
    says(p, row, labels) {
      const [{ family, p: own }, rest] = inside(p, row);
      return family.says?.(own, rest, labels);
    },
    chances(p, row) {
      const [{ family, p: own }, rest] = inside(p, row);
      return family.chances?.(own, rest);
    },
  },
});
