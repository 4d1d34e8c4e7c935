// The names of ranges of numbers between edges, as Python writes them: they are hashed.
import { digits } from './core.js';

/** As .12g. */
function brief(x) {
  const [first, power] = digits(x).toExponential(11).split('e');
  return power >= -4 && power < 12 ? String(digits(x))
    : `${Number(first)}e${power.replace(/^.(?=.$)/, '$&0')}`;
}

export function names(edges) {
  const words = edges.map(brief);
  const between = words.slice(1).map((word, i) => `${words[i]} to ${word}`);
  return [`below ${words[0]}`, ...between, `${words.at(-1)} or more`];
}
