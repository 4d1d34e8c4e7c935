// Public fields, which are sent openly, and the steps of a protocol.
import { check, isIds, isInt, isLike, isList, isName, bad, refuse } from './core.js';

const isDigest = isLike(/^[0-9a-f]{64}$/);
const isField = (x) => check('fields', x, { name: isName, values: (ids) => isIds(ids, 1000) });

export function checkOpen(fields, after) {
  const strata = isList(fields, isField, 0, 3) && fields.reduce((all, { values }) => all * values.length, 1);
  if (!strata || strata > 1000) bad('manifest', 'fields');
  if (after !== null) {
    check('after', after, {
      root: isDigest,
      parent: (x, { root, step }) => isDigest(x) && (x === root) === (step === 2),
      step: (x) => isInt(x, 2, 65535),
    });
  }
}

/** The public values of a respondent, all of them and nothing else. */
export const shown = (fields, given) => Object.fromEntries(fields.map(({ name, values }) => {
  const own = Object.hasOwn(Object(given), name) && values.includes(given[name]);
  return [name, own ? given[name] : refuse('bad-answer', `"${name}" must be one of ${values}`.slice(0, 300))];
}));
