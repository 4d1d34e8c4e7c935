// Bits or signs of the cells of a cohort: cms, orappor, hcms.
import { register } from './core.js';
import { SIGNS } from './hadamard.js';
import { BITS } from './sets.js';
import { PERMUTED, cohorts } from './text.js';

export const HASHES = { hashes: () => [1, 16] };

register({
  cms: cohorts(BITS),
  orappor: cohorts(BITS, { ...HASHES, ...PERMUTED }),
  hcms: cohorts(SIGNS),
});
