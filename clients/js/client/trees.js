// One level of a tree of bins of numbers is drawn: hh.
import { bad, listed, range, register } from './core.js';
import { DRAWN, inside, opened } from './drawn.js';
import { GRID, placed } from './numbers.js';

/** The bins of a domain: which one an encoded number is in, and where bin i begins and ends. */
function binned(domain, most) {
  const { steps } = domain;
  if (!steps) {
    const of = (v) => Math.min(Math.floor((v * most) / GRID), most - 1);
    return { size: most, of, from: (i) => i / most, to: (i) => i / most };
  }
  const each = Math.ceil(steps / most);
  const step = (v) => Number((BigInt(v) * BigInt(steps - 1) + 2n ** 31n) >> 32n);
  return {
    size: Math.ceil(steps / each),
    of: (v) => Math.floor(step(v) / each),
    from: (i) => (i * each) / (steps - 1),
    to: (i) => (Math.min(i * each, steps) - 1) / (steps - 1),
  };
}

register({
  hh: {
    ...DRAWN,
    takes: ({ lo, steps }) => lo !== undefined && !(steps > 2 ** 31),
    design: {
      bins: ({ domain }) => [2, Math.min(domain.steps ?? 1024, 1024)],
      fan_out: ({ bins }) => [2, bins],
    },
    ready({ domain, bins, fan_out: wide }, leaf, where) {
      const { size, of, from, to } = binned(domain, bins);
      const widths = [1];
      while (widths[0] * wide < size) widths.unshift(widths[0] * wide);
      if (leaf.branches.length !== widths.length) bad(where, 'branches');
      return opened(where, leaf, {}, (_, level) => {
        const width = widths[level];
        const nodes = Math.ceil(size / width);
        const name = (node) => {
          const ends = [from(node * width), to(Math.min((node + 1) * width, size))];
          return [...new Set(ends.map((x) => placed(domain, x)))].join(' to ');
        };
        return {
          domain: listed(nodes, domain.optional),
          sees: (v) => (v > GRID ? nodes : Math.floor(of(v) / width)),
          names: () => [...range(nodes).map(name), 'no answer'],
        };
      });
    },
    says(p, row) {
      const [{ m: { family, p: own }, names }, rest] = inside(p, row);
      return family.says?.(own, rest, names());
    },
  },
});
