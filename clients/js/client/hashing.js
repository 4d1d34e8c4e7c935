// One of g cells under a random hash function, which the report names: blh, olh.
import { W, little, range, register } from './core.js';
import { keepOrDraw, mixture } from './direct.js';

function isPrime(x) {
  for (let d = 2; d * d <= x; d++) if (x % d === 0) return false;
  return true;
}

/** The most cells that a family allows. */
export const hashDesign = (most) => ({
  modulus: ({ k }) => [k, 2 ** 31 - 1, isPrime],
  g: ({ modulus }) => [2, Math.min(modulus, most)],
});

export const drawHash = ({ modulus }, coins) => range(3).map(() => coins.choice(modulus));

export function cellOf({ g, modulus }, hash, value) {
  const [a, b, c, v, p] = [...hash, value, modulus].map(BigInt);
  return Number(((((a * v + b) * v + c) % p) * BigInt(g)) / p);
}

export const named = (hash, cell, g) => [...hash.flatMap((x) => [...little(x, 2 ** 32)]), ...little(cell, g)];

const hashing = (most) => ({
  design: hashDesign(most),
  thresholds: ['keep'],
  words: () => 5,
  row(p, value, coins) {
    const hash = drawHash(p, coins);
    return named(hash, keepOrDraw(cellOf(p, hash, value), p.g, p.keep, coins), p.g);
  },
  ratio: ({ g, keep }) => mixture(W * keep, g),
});

register({ blh: hashing(2), olh: hashing(65536) });
