// Why a report can be denied, in numbers from the manifest.

const W = 1n << 64n;
const SETS = ['sue', 'oue', 'ue', 'the', 'ss', 'basicrappor', 'lsue', 'loue', 'lsoue', 'losue'];
const quote = (label) => `“${label}”`;
const bytesOf = (hex) => (hex.match(/../g) ?? []).map((pair) => parseInt(pair, 16));

/** Rounded up to three digits: it stands after "at most" or "up to". */
export function atMost(x, more = {}) {
  const unit = 10 ** (Math.floor(Math.log10(x)) - 2);
  const up = Math.ceil(x / unit - 1e-9) * unit; // 0.1 + 0.2 is 0.3
  return up.toLocaleString('en', { maximumSignificantDigits: 3, ...more });
}

const times = (epsilon) =>
  atMost(Math.exp(epsilon), { notation: epsilon > 13 ? 'scientific' : 'standard' });
const bound = (epsilon) => `at most e^${atMost(epsilon)} = ${times(epsilon)} times`;

/** Exact counts out of W^2: how a report comes from its own answer, and from each other one. */
export function chances({ mechanism, thresholds, domain }, report) {
  const keep = BigInt(thresholds.keep);
  if (mechanism === 'brr') return { own: keep * W, other: (W - keep) * W };
  const k = BigInt(domain.labels.length);
  const start = (i) => (BigInt(i) * W + k - 1n) / k;
  const other = (W - keep) * (start(report + 1) - start(report));
  return { own: keep * W + other, other };
}

const percent = (part, whole) => `${(Number((part * 100_000n) / whole) / 1000).toFixed(1)}\u00a0%`;

const indexOf = (hex) => bytesOf(hex).reduce((sum, byte, i) => sum + byte * 256 ** i, 0);

function exact(spec, hex) {
  const report = indexOf(hex);
  const { labels } = spec.domain;
  const { own, other } = chances(spec, report);
  const all = own + other * BigInt(labels.length - 1);
  const label = quote(labels[report]);
  return {
    says: label,
    why: [
      `${percent(own, W * W)} of the people whose answer is ${label} send exactly this report, and so do `
        + `${percent(other, W * W)} of those with any other answer.`,
      `Were all answers equally common, ${percent(all - own, all)} of such reports would come from `
        + `people whose answer is not ${label}.`,
    ],
  };
}

const named = (labels, bytes) =>
  labels.filter((_, v) => bytes[v >> 3] & (1 << (v & 7))).map(quote).join(', ') || 'none of the answers';

function saying({ mechanism, domain: { labels } }, hex) {
  if (labels && mechanism === 'lgrr') return quote(labels[indexOf(hex)]);
  return labels && SETS.includes(mechanism)
    ? named(labels, bytesOf(hex)) : 'a number that only statistics over many people can use';
}

/** What a report says, and why that proves nothing. */
export function odds({ mechanism: spec }, hex) {
  const { mechanism, domain, epsilon_1: once = spec.epsilon } = spec;
  if (['brr', 'grr'].includes(mechanism) && domain.labels) return exact(spec, hex);
  const why = [`This very report is ${bound(once)} as likely with your answer as with any other.`];
  return { says: saying(spec, hex), why };
}

/** The promise about all that one person sends. */
export function total({ epsilon, rounds, changes }) {
  const what = rounds > 1 ? 'All that you send in all rounds together' : 'All of it together';
  const others = changes ? 'others that stay the same, change, and come back when yours do' : 'any others';
  const shows = changes
    ? ' This does not hide which rounds have the same answer: when an answer changed, and whether an earlier one came back.'
    : '';
  return `${what} is ${bound(epsilon)} as likely with your answers as with ${others}.${shows}`;
}
