// Orders of all values that a key decides.
import { range } from './core.js';
import { mix } from './text.js';

/** The place of a value among all, sorted by their hashes. */
export function rank(value, size, start) {
  const key = (v) => mix(start + BigInt(v));
  const own = key(value);
  return range(size).filter((v) => key(v) < own).length;
}

export function permute(value, size, key) {
  if (size <= 64) return rank(value, size, key);
  const bits = size.toString(2).length;
  let x = BigInt(value);
  do {
    for (let round = 0n; round < 6n; round++) {
      const word = mix(key + round);
      x = BigInt.asUintN(bits, x * (word | 1n) + (word >> 32n));
      x ^= x >> BigInt((bits + 1) >> 1);
    }
  } while (x >= size);
  return Number(x);
}
