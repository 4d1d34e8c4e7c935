// A noisy count for each answer, from Laplace noise on a grid: she.
import { W, log, range, register } from './core.js';

function laplace({ decay: a, steps, reach }) {
  const exact = (y) =>
    (a ** BigInt(y) * (y === steps + reach ? W : W - a)) / (W ** BigInt(y - 1) * (W + a));
  const power = BigInt(steps);
  const weights = range(steps + 2 * reach + 1).map((byte) => {
    const y = byte - reach;
    if (Math.abs(2 * y - steps) < 2) return 0n;
    return y > 0 ? exact(y) : (exact(steps - y) * W ** power) / a ** power;
  });
  const left = weights.reduce((rest, weight) => rest - weight, W);
  const far = steps % 2 ? (left * a + W + a - 1n) / (W + a) : 0n;
  weights[reach + ((steps + 1) >> 1)] = far;
  weights[reach + (steps >> 1)] = left - far;
  return weights;
}

register({
  she: {
    design: {
      steps: () => [1, 16],
      reach: ({ steps, epsilon }) => [0, Math.min((255 - steps) / 2, (80 * steps) / epsilon - steps)],
    },
    thresholds: ['decay'],
    ready(p) {
      const weights = laplace(p);
      let sum = 0n;
      return { weights, edges: weights.map((weight) => (sum += weight)) };
    },
    words: ({ k }) => k,
    row({ k, edges, reach, steps }, value, coins) {
      const bytes = Uint8Array.from(range(k), () => coins.pick(edges));
      bytes[value] = 2 * reach + steps - bytes[value];
      return bytes;
    },
    // Two counts differ; without end where a weight is 0.
    ratio: ({ weights }) =>
      2 * Math.max(...weights.map((weight, i) => log(weights.at(-1 - i), weight))),
  },
});
