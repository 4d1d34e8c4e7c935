// What the integers of a manifest reveal, whatever its words say. docs/formats.md has the ratios.

const W = 1n << 64n;
/** For doubles, whose last digits differ from Python's exact ratios. */
const SLACK = 1e-9;

/** ln(n / d), also where it is small. */
const log = (n, d) => Math.log1p(Number(n - d) / Number(d));

/** What is drawn from if the answer is forgotten; 0 where every bit is kept or flipped. */
function outcomes(name, { k, g, block, width }) {
  if (block) return Math.ceil(k / (block - 1));
  if (name === 'orr') return width;
  return g ?? (/^l?grr$/.test(name) ? k : 0);
}

function bits({ permanent = W, permanent_one = permanent, ...p }, forever) {
  const { permanent_zero = W - permanent, one, zero, hashes = 1 } = p;
  const share = (first) => first * (forever ? W : one) + (W - first) * (forever ? 0n : zero);
  const [own, other] = [share(permanent_one), share(permanent_zero)];
  return hashes * log(own * (W * W - other), other * (W * W - own));
}

function kept(name, { permanent_keep, keep, k, omega, block, w = 1, ...p }, forever) {
  const own = permanent_keep ? permanent_keep * (forever ? W : keep) : W * keep;
  const rest = W * W - own;
  const n = BigInt(outcomes(name, { k, block, ...p }));
  if (n) return log(own * W * (block ? 2n : 1n) + rest * (W / n), rest * (W / n));
  if (!omega) return Math.min(2, w) * log(own, rest);
  const unequal = -2 * Math.log1p((-omega * (k - 1)) / Number(W)); // draws among k - 1
  return log(own * BigInt(k - omega), rest * BigInt(omega)) + unequal;
}

/** Two cells of a noisy histogram; without end where a weight is 0. */
const noise = ({ weights }) =>
  2 * Math.max(...weights.map((weight, i) => log(weights.at(-1 - i), weight)));

/**
 * Epsilon of one report, or of all that are made from what is kept for `forever`. Not above 0 where
 * reports point to other answers than one's own.
 */
export function cost(name, p, forever = false) {
  return p.weights ? noise(p) : p.one ? bits(p, forever) : kept(name, p, forever);
}

const within = (found, epsilon) => found > 0 && found <= epsilon + SLACK;

/** Whether the integers `p` of a spec keep its epsilons. */
export function honest({ mechanism: name, epsilon, epsilon_1 = epsilon, epsilon_inf }, p) {
  if (!within(cost(name, p), epsilon_1)) return false;
  if (epsilon_inf) return epsilon_1 < epsilon_inf && within(cost(name, p, true), epsilon_inf);
  return !p.permanent || cost(name, p, true) > 0;
}

/** What a person spends at most. `all` has, by question: name, p, twoSteps, keyIsValue. */
export function spent({ divide, rounds, changes }, all) {
  const each = all.map(({ name, p, twoSteps, keyIsValue }) => {
    if (!twoSteps || rounds < 2) return rounds * cost(name, p);
    // Where answers share a permanent draw, whether two do shows at any epsilon.
    if (changes && !keyIsValue) return Infinity;
    return Math.min(changes + 1, p.k || Infinity) * cost(name, p, true);
  });
  return divide === 'sampled' ? Math.max(...each) : each.reduce((a, b) => a + b, 0);
}

/** Whether a person spends no more than the manifest says. */
export const affordable = (manifest, all) => within(spent(manifest, all), manifest.epsilon);
