// The names of ranges of numbers between edges, as Python writes them: they are hashed.

/** Up to 12 digits, as .12g; of two that are as near, the even one. */
function brief(x) {
  const [first, power] = x.toExponential(11).split('e');
  const [more] = x.toExponential(40).split('e');
  const tie = /^-?\d\.\d{10}[13579]\d*$/.test(first) && /^-?\d\.\d{11}50*$/.test(more);
  // toExponential goes away from zero: one step back.
  const digits = tie ? first.slice(0, -1) + (first.at(-1) - 1) : first;
  return power >= -4 && power < 12 ? String(Number(`${digits}e${power}`))
    : `${Number(digits)}e${power.replace(/^.(?=.$)/, '$&0')}`;
}

export function names(edges) {
  const words = edges.map(brief);
  const between = words.slice(1).map((word, i) => `${words[i]} to ${word}`);
  return [`below ${words[0]}`, ...between, `${words.at(-1)} or more`];
}
