// Sets of answers, "choose all that apply": setselect, jointbits.
import { W, isIds, isInt, little, log, range, register } from './core.js';
import { indexOf, keepOrDraw, mixture } from './direct.js';
import { SET, pack, sample } from './sets.js';

/** Exactly `most` places: those of a set, filled up with the first places after the list. */
const padded = (items, most, places) => [...places, ...range(most - places.length).map((i) => items + i)];

function choose(n, r) {
  let found = 1n;
  for (let i = 1; i <= r; i++) found = (found * BigInt(n - r + i)) / BigInt(i);
  return found;
}

const sum = (numbers) => numbers.reduce((all, x) => all + x, 0n);
const sumsTo = (weights) => weights.map((_, i) => sum(weights.slice(0, i + 1)));
const least = ({ w, domain: { items } }) => Math.max(0, w - items);

/** By how many items a report shares: how many reports there are, and the weight of all. */
function overlaps(p) {
  const { w, tau, one, zero, domain: { items, most } } = p;
  const first = least(p);
  const sets = range(Math.min(most, w) - first + 1).map((i) => choose(most, first + i) * choose(items, w - first - i));
  const others = sets.slice(0, tau - first);
  const [few, many] = [sum(others), sum(sets.slice(tau - first))];
  const weights = sets.map((n, i) => (others[i] ? (zero * n + few - 1n) / few : (one * n) / many));
  const largest = others.reduce((at, n, i) => (n > others[at] ? i : at), 0);
  weights[largest] += W - sum(weights);
  const each = weights.map((weight, i) => (weight * (few + many) * W) / sets[i]).sort((x, y) => (x < y ? -1 : 1));
  const right = one + zero === W && one * few > zero * many;
  const ratio = right ? log(each.at(-1), each[0]) : Infinity;
  // Draws are not quite equally likely.
  return { edges: sumsTo(weights), cost: ratio - 2 * Math.log1p((-w * (items + most)) / Number(W)) };
}

/** Of one item: "none of these" is most likely for the empty set, and least for a full one. */
function costOfOne({ one, zero, domain: { items, most } }) {
  const empty = W - BigInt(items) * zero;
  const full = empty - BigInt(most) * (one - zero);
  return one > zero && full > 0n ? Math.max(log(one, zero), log(empty, full)) : Infinity;
}

/** How many pairs of answers a server counts. */
const pairs = ({ w, domain: { items, most, answers: { length: k } } }) =>
  (Math.min(w, most) > 1 && items <= 256 ? (k * (k - 1)) / 2 : 0);

register({
  setselect: {
    takes: ({ items }) => items,
    design: {
      w: ({ domain: { items, most } }) => [1, Math.min(512, items + most - 1)],
      tau: (p) => [1 + least(p), Math.min(p.domain.most, p.w)],
    },
    thresholds: ['one', 'zero'],
    ready: (p) => (p.w > 1 ? overlaps(p) : { cost: costOfOne(p) }),
    words: ({ w }) => (w > 1 ? w + 1 : 1),
    row(p, value, coins) {
      const { w, one, zero, edges, domain: { items, most } } = p;
      if (w === 1) {
        const weights = range(items).map((place) => (value.includes(place) ? one : zero));
        return little(coins.pick([...sumsTo(weights), W]), items + 1);
      }
      const others = range(items + most).filter((place) => !value.includes(place));
      const shared = least(p) + coins.pick(edges);
      return pack(items + most, [
        ...sample(most, shared, coins).map((i) => value[i]),
        ...sample(items, w - shared, coins).map((i) => others[i]),
      ]);
    },
    ratio: ({ cost }) => cost,
    cells: (p) => (p.w > 1 ? p.domain.items + p.domain.most + pairs(p) : p.domain.items + 1),
    says: ({ w, ...p }, row, labels) => (w > 1 ? SET.says(p, row, labels) : labels[indexOf(row)] ?? []),
  },
  jointbits: {
    takes: ({ items }) => items,
    design: { w: ({ domain: { items } }) => [1, Math.min(16, items)] },
    thresholds: ['keep'],
    words: ({ w }) => w + 2,
    row({ w, keep, domain: { items } }, value, coins) {
      const asked = sample(items, w, coins).sort((a, b) => a - b);
      const own = asked.reduce((all, place, i) => all + value.includes(place) * 2 ** i, 0);
      return [...pack(items, asked), ...little(keepOrDraw(own, 2 ** w, keep, coins), 2 ** w)];
    },
    ratio: ({ w, keep }) => mixture(W * keep, 2 ** w),
    cells: (p) => 2 * p.domain.items + 4 * pairs(p),
    /** Those of the answers it is about that it says are ticked. */
    says({ domain: { items } }, row, labels) {
      const size = pack(items, []).length;
      const asked = range(items).filter((v) => row[v >> 3] & (1 << (v & 7)));
      const cell = indexOf(row.slice(size));
      return asked.filter((_, i) => cell & (1 << i)).map((v) => labels[v]);
    },
  },
}, {
  choices: {
    keys: {
      answers: (x, { optional }) => isIds(x, 65536) && !(optional && x.includes('(no answer)')),
      at_most: (x, { answers }) => isInt(x, 1, Math.min(answers.length, 1024)),
    },
    of({ answers, at_most: most, optional }) {
      const items = answers.length + optional;
      return { items, most, zero: padded(items, most, []), skip: padded(items, most, [answers.length]) };
    },
    names: ({ answers }) => answers,
    must: ({ at_most: most, answers }) => `a list of at most ${most} of ${answers}, each once`,
    encode({ items, most, answers }, x) {
      const places = Array.isArray(x) ? x.map((one) => answers.indexOf(one)).sort((a, b) => a - b) : [-1];
      const right = places.length <= most && places.every((place, i) => place >= 0 && place !== places[i - 1]);
      return right ? padded(items, most, places) : -1;
    },
  },
});
