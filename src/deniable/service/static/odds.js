// Why a report can be denied, in numbers from the manifest.
import { isolated } from '/page.js';

const W = 1n << 64n;
const quote = (label) => `“${isolated(label)}”`;

/** Rounded up to three digits: it stands after "at most" or "up to". */
export function atMost(x, more = {}) {
  const unit = 10 ** (Math.floor(Math.log10(x)) - 2);
  const up = Math.ceil(x / unit - 1e-9) * unit; // 0.1 + 0.2 is 0.3
  return up.toLocaleString('en', { maximumSignificantDigits: 3, ...more });
}

const times = (epsilon) =>
  atMost(Math.exp(epsilon), { notation: epsilon > 13 ? 'scientific' : 'standard' });
const bound = (epsilon) => `at most e^${atMost(epsilon)} = ${times(epsilon)} times`;

const percent = (part, whole) => `${(Number((part * 100_000n) / whole) / 1000).toFixed(1)}\u00a0%`;

/** What is known exactly: how often a report comes from its own answer, and from each other one. */
function exact([own, other], label, k) {
  const all = own + other * BigInt(k - 1);
  return [
    `${percent(own, W * W)} of the people whose answer is ${label} send exactly this report. So do `
      + `${percent(other, W * W)} of those with any other answer.`,
    `If all answers were equally common, ${percent(all - own, all)} of such reports would come from `
      + `people whose answer is not ${label}.`,
  ];
}

/** More of a report is not shown in words. */
const MOST = 8;

/** What a report says; families without words make numbers. */
function saying(found) {
  if (found === undefined) return 'a number that only statistics over many people can use';
  const all = [found].flat();
  const shown = all.slice(0, MOST).map(quote).join(', ');
  const more = all.length - MOST;
  if (more > 0) return `${shown} and ${more === 1 ? '1 other' : `${more} others`}`;
  return shown || 'none of the answers';
}

/** What a report says, and why that proves nothing. */
export function odds({ m: { family, p } }, row, labels) {
  const says = saying(family.says?.(p, row, labels));
  const chances = family.chances?.(p, row);
  const why = chances ? exact(chances, says, labels.length)
    : [`This very report is ${bound(p.epsilon)} as likely with your answer as with any other.`];
  return { says, why };
}

/** The promise about all that one person sends. */
export function total({ epsilon, rounds, changes, fields }) {
  const what = rounds > 1 ? 'All that you send in all rounds together' : 'All of it together';
  const others = changes ? 'others that stay the same, change, and come back when yours do' : 'any others';
  const shows = changes
    ? ' This does not hide which rounds have the same answer: when an answer changed, and whether an earlier one came back.'
    : '';
  const but = fields.length ? ', but for what is sent as it is,' : '';
  return `${what}${but} is ${bound(epsilon)} as likely with your answers as with ${others}.${shows}`;
}
