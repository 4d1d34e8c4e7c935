// What the integers of a manifest spend: a page must not show an epsilon that they break.

const W = 1n << 64n;
/** For doubles, whose last digits differ from Python's exact ratios. */
const SLACK = 1e-9;
const sizeOf = ({ labels, size }) => labels?.length ?? size;
const odds = (part) => Number(part) / Number(W * W - part);

/** Among how many reports a mechanism draws that forgets the answer; 0 where every bit is flipped. */
function outcomes({ mechanism, domain, design: { g, block, width } }) {
  if (block) return 2 * Math.ceil(sizeOf(domain) / (block - 1));
  if (mechanism === 'orr') return width;
  return g ?? (/^l?grr$/.test(mechanism) ? sizeOf(domain) : 0);
}

/** Of what is kept for ever, and of a report that is made from it. Nothing kept is kept for certain. */
function channel({ thresholds }) {
  const named = Object.entries(thresholds).map(([name, text]) => [name, BigInt(text)]);
  const { permanent = W, ...rest } = Object.fromEntries(named);
  return { permanent_keep: W, permanent_one: permanent, permanent_zero: W - permanent, ...rest };
}

/** How many times likelier something is with one answer than with another, at most: docs/formats.md. */
function likelier(spec, { permanent_keep, permanent_one, permanent_zero, keep, one, zero, decay }) {
  const { omega, steps, hashes = 1, w = 1 } = spec.design;
  if (decay) return (Number(W) / Number(decay)) ** (2 * steps);
  const bit = (first) => odds(first * one + (W - first) * zero);
  let r = keep ? odds(permanent_keep * keep) : bit(permanent_one) / bit(permanent_zero);
  if (omega) r *= (sizeOf(spec.domain) - omega) / omega;
  const n = outcomes(spec);
  return n ? 1 + n * r : Math.max(r, 1 / r) ** (w > 1 ? 2 : hashes);
}

/** Of one report. */
export const once = (spec) => likelier(spec, channel(spec));

/** Of any number of reports that are made from what is kept: as if the second step were certain. */
export function forever(spec) {
  const integers = channel(spec);
  return likelier(spec, integers.keep ? { ...integers, keep: W } : { ...integers, one: W, zero: 0n });
}

const remembers = ({ mechanism, thresholds }) =>
  mechanism === 'dbitflippm' || Object.keys(thresholds).some((name) => name.startsWith('permanent'));

/** Where a device remembers this is the least: one report of each answer. */
const spent = (spec, { rounds, changes }) =>
  Math.log(once(spec)) * (remembers(spec) && rounds > 1 ? changes + 1 : rounds);

/** Whether the integers keep every epsilon of a manifest. */
export function honest(manifest) {
  const specs = manifest.questions.map(({ mechanism }) => mechanism);
  const within = (found, epsilon) => found <= epsilon + SLACK;
  const all = specs.map((spec) => spent(spec, manifest));
  const total = manifest.divide === 'sampled' ? Math.max(...all) : all.reduce((a, b) => a + b, 0);
  return within(total, manifest.epsilon) && specs.every((spec) =>
    within(Math.log(once(spec)), spec.epsilon_1 ?? spec.epsilon)
      && (!spec.epsilon_inf || within(Math.log(forever(spec)), spec.epsilon_inf)));
}
