// A mechanism from its spec, outside of any collection: for audits and tests.
import { bad, check, domainOf, encode as encodeOne, isInt, isList, listed, made, refuse } from './core.js';

const isObject = (x) => Object(x) === x;

/** In a spec a choice may be of 0..size-1, and one domain may hold several. */
function domain(spec) {
  if (spec.kind === 'several') return several(spec);
  if (!Object.hasOwn(spec, 'size')) return domainOf('spec', spec);
  check('spec', spec, {
    kind: (x) => x === 'choice',
    size: (x) => isInt(x, 2, 2 ** 31 - 2),
    optional: (x) => typeof x === 'boolean',
    ordered: (x) => typeof x === 'boolean',
    other: (x) => x === null,
  });
  return { ...spec, ...listed(spec.size, spec.optional) };
}

function several(spec) {
  check('spec', spec, { kind: Boolean, optional: (x) => x === false, parts: Array.isArray });
  const parts = {};
  for (const { name, ...part } of spec.parts) {
    parts[typeof name === 'string' && !Object.hasOwn(parts, name) ? name : bad('spec', 'parts')] = domain(part);
  }
  const all = Object.values(parts);
  if (!all.length) bad('spec', 'parts');
  return {
    ...spec,
    parts,
    zero: all.map(({ zero }) => zero),
  };
}

/** Whether this stands for an answer. */
const isValue = ({ parts, k, zero, items, most }, x) => (parts
  ? Array.isArray(x) && Object.values(parts).every((part, i) => isValue(part, x[i]))
  : items ? isList(x, (place, i) => isInt(place, i ? x[i - 1] + 1 : 0, items + most - 1), most, most)
  : typeof x === typeof zero && (k ? isInt(x, 0, k - 1) : x >= 0));

/** The integers of an answer to a domain; of several, one by one. */
export async function encode(spec, answer) {
  if (spec.kind !== 'several') return encodeOne('spec', domainOf('spec', spec), answer);
  const { parts } = several(spec);
  const values = [];
  for (const name in parts) {
    if (!Object.hasOwn(Object(answer), name)) refuse('bad-answer', `the answer to "${name}" must be given`);
    values.push(await encodeOne(name, parts[name], answer[name]));
  }
  return values;
}

export async function mechanism(spec) {
  check('spec', spec, { deniable: (x) => x === 2, domain: isObject, mechanism: isObject });
  const own = domain(spec.domain);
  const m = await made('spec', own, spec.mechanism);
  const report = (value, bytes) =>
    (isValue(own, value) ? Uint8Array.from(m.report(value, bytes)) : refuse('bad-answer', 'no encoded answer'));
  return { ...m, report };
}

/** The row of one report: a pure function of the encoded answer and the coins. */
export const report = async (spec, value, bytes) => (await mechanism(spec)).report(value, bytes);
