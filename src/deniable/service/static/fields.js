// One input for each kind of question; errors are tied to it.
import { digits, tidy, utf8 } from '/client/core.js';
import { el, isolated } from '/page.js';

const FEW = 8;
/** Numbers of so many steps are chosen from a row. */
const MOST_STEPS = 12;
const SKIP = 'I would rather not answer';
const NONE = 'None of these';

function frame(name, input, hint) {
  const error = el('p', { id: `error-${name}`, class: 'error' });
  const about = hint ? [el('p', { id: `hint-${name}`, class: 'hint' }, hint)] : [];
  input.setAttribute('aria-describedby', `${hint ? `hint-${name} ` : ''}error-${name}`);
  return { error, about };
}

/**
 * What `read` returns is an answer, null for a skip, or undefined where there is neither, which
 * `missing` explains; what `shown` returns are the words of that answer.
 */
function field(node, focus, input, error, missing, read, shown) {
  const mark = (wrong) => {
    error.textContent = wrong ? missing() : '';
    input.setAttribute('aria-invalid', wrong);
  };
  node.addEventListener('input', () => mark(false));
  return {
    node,
    read() {
      const answer = read();
      mark(answer === undefined);
      return answer;
    },
    focus,
    shown,
  };
}

const CHOOSE = () => 'Please choose one.';

function radios({ name, ask, hint }, labels, answers, way = '') {
  const inputs = labels.map((_, i) => el('input', { type: 'radio', name, value: i, id: `${name}-${i}` }));
  const lines = inputs.map((input, i) => el('label', { class: 'radio' }, input, el('span', {}, labels[i])));
  const node = el('fieldset', { class: 'card', role: 'radiogroup' }, el('legend', {}, ask));
  const { error, about } = frame(name, node, hint);
  node.append(...about, el('div', { class: way }, ...lines), error);
  const chosen = (list) => list[inputs.findIndex((input) => input.checked)];
  return field(node, () => inputs[0].focus(), node, error, CHOOSE,
    () => chosen(answers), () => chosen(labels));
}

function labelled({ name, ask, hint, unit }, input, missing, read, shown, ...more) {
  input.id = `field-${name}`; // a question may be named like a part of the page
  const { error, about } = frame(name, input, hint);
  const label = el('label', { for: input.id, class: 'ask' }, ask);
  const shownInput = unit ? el('div', { class: 'measured' }, input, el('span', { 'aria-hidden': 'true' }, unit)) : input;
  const node = el('div', { class: 'card' }, label, ...about, shownInput, ...more, error);
  return field(node, () => input.focus(), input, error, missing, read, shown);
}

function list(question, labels, answers) {
  const options = labels.map((label, i) => el('option', { value: i }, label));
  const input = el('select', {}, el('option', { value: '' }, 'Choose …'), ...options);
  const chosen = (list) => list[input.selectedIndex - 1];
  return labelled(question, input, CHOOSE, () => chosen(answers), () => chosen(labels));
}

const oneOf = (question, labels, answers) =>
  (labels.length > FEW ? list : radios)(question, labels, answers);

/** One of some answers, of which the last is a skip if there may be one. */
function listed(question, { labels }, answers) {
  const skip = question.optional;
  return oneOf(question, skip ? [...labels.slice(0, -1), SKIP] : labels, skip ? [...answers, null] : answers);
}

/**
 * Any of some answers, up to as many as the question allows: the others then wait. What excludes
 * all answers, none of them and a skip, is ticked alone.
 */
function boxes(question, { labels }) {
  const { name, ask, answers, at_most: most, optional } = question;
  const words = [...labels.slice(0, answers.length), NONE, ...optional ? [SKIP] : []];
  const inputs = words.map((_, i) => el('input', { type: 'checkbox', name, value: i, id: `${name}-${i}` }));
  const lines = inputs.map((input, i) => el('label', { class: 'radio' }, input, el('span', {}, words[i])));
  const node = el('fieldset', { class: 'card' }, el('legend', {}, ask));
  const few = most < answers.length;
  const { error, about } = frame(name, node, few ? `Tick up to ${most}.` : 'Tick all that apply.');
  const full = el('p', { class: 'hint', role: 'status' });
  node.append(...about, ...lines, full, error);
  const [listed, alone] = [inputs.slice(0, answers.length), inputs.slice(answers.length)];
  const ticked = () => listed.filter((input) => input.checked);
  node.addEventListener('change', ({ target }) => {
    const excluded = alone.includes(target) ? inputs : alone;
    for (const input of excluded) if (target.checked && input !== target) input.checked = false;
    const wait = few && ticked().length >= most;
    for (const input of listed) input.disabled = wait && !input.checked;
    full.textContent = wait ? `You have ticked ${most}. To tick another one, take one back.` : '';
  });
  const read = () => {
    if (alone[1]?.checked) return null;
    return ticked().length || alone[0].checked ? ticked().map(({ value }) => answers[value]) : undefined;
  };
  const shown = () => inputs.filter((input) => input.checked).map(({ value }) => isolated(words[value])).join(', ');
  const missing = () => `Please tick what applies, or “${NONE}”.`;
  return field(node, () => inputs[0].focus(), node, error, missing, read, shown);
}

/** An input that people fill in, and a box for those who skip it. */
function typed(question, input, missing, read, shown, ...more) {
  if (!question.optional) return labelled(question, input, missing, read, shown, ...more);
  const box = el('input', { type: 'checkbox', id: `skip-${question.name}` });
  box.addEventListener('change', () => { input.disabled = box.checked; });
  const skip = el('label', { class: 'radio' }, box, el('span', {}, SKIP));
  const unless = (skipped, other) => () => (box.checked ? skipped : other());
  return labelled(question, input, () => `${missing()} Or tick the box.`,
    unless(null, read), unless(SKIP, shown), ...more, skip);
}

/** A number for people: blanks part thousands, for commas and points mean two things. */
const written = (x) => x.toLocaleString('en', { maximumSignificantDigits: 12 }).replaceAll(',', '\u202f');
const measured = (x, unit) => (unit ? `${x}\u00a0${unit}` : x);

const NUMBER = /^[-+]?(\d+([.,]\d*)?|[.,]\d+)$/;
/** 1,000 and 1.000 may be 1 or 1000. */
const UNCLEAR = /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/;
/** As typed, but for blanks and apostrophes between thousands, and with a plain minus. */
const bare = (typed) => typed.trim().replace(/(?<=\d)[\s'\u2019](?=\d{3}(?!\d))/g, '').replace('\u2212', '-');

/** 6.5, and 6,5 as much of the world writes it. */
function parsed(typed) {
  const text = bare(typed);
  const value = Number(text.replace(',', '.'));
  return NUMBER.test(text) && !UNCLEAR.test(text) && Number.isFinite(value) ? value : undefined;
}

function whyNot(typed, { lo, hi }) {
  const text = bare(typed);
  if (UNCLEAR.test(text)) return `Please write a number without a comma or point after the thousands: ${text.replace(/[.,]/, '')}.`;
  return lo === undefined ? 'Please write a number, like 6.5 or 1000.' : `Please write a number from ${written(lo)} to ${written(hi)}.`;
}

/** The groups of numbers between edges, in words. */
export function ranges(edges) {
  const words = edges.map(digits);
  return [`below ${words[0]}`, ...words.slice(1).map((word, i) => `${words[i]} to ${word}`), `${words.at(-1)} or more`];
}

/** The group of a number is chosen; any number of the group stands for it. */
function groups(question, words) {
  const { edges, unit } = question;
  const hint = `${unit ? `In ${unit}. ` : ''}A number on a limit belongs to the higher group.`;
  return listed({ ...question, hint }, words, [-Number.MAX_VALUE, ...edges]);
}

/** What the range does with an answer: always said. */
function span({ lo, hi, step, outside, unit }) {
  const limits = `From ${written(lo)} to ${measured(written(hi), unit)}.`;
  if (outside === 'refuse') return limits;
  const steps = step ? ` It rounds them to steps of ${written(step)}.` : '';
  return `${limits} Only this range counts: your device moves answers beyond it to its ends.${steps}`;
}

const stepsOf = ({ lo, hi, step }) => (step ? Math.round((hi - lo) / step) : Infinity);

/** Few steps are choices. */
function scale(question) {
  const { lo, hi, outside, unit, optional } = question;
  const answers = Array.from({ length: stepsOf(question) + 1 }, (_, i) =>
    Number((lo + i * question.step).toPrecision(12)));
  const labels = answers.map((x) => measured(written(x), unit));
  const hint = outside === 'refuse' ? ''
    : `Only the range from ${written(lo)} to ${measured(written(hi), unit)} counts: beyond it, choose the nearest end.`;
  const skip = optional ? [SKIP] : [];
  return radios({ ...question, hint }, [...labels, ...skip], [...answers, ...skip.map(() => null)], 'scale');
}

function number(question, words) {
  if (words.labels?.length <= FEW) return groups(question, words);
  if (stepsOf(question) < MOST_STEPS) return scale(question);
  const { lo, hi, outside, unit } = question;
  const input = el('input', { type: 'text', inputmode: 'decimal', autocomplete: 'off' });
  const refused = (x) => outside === 'refuse' && (x < lo || x > hi);
  const read = () => (refused(parsed(input.value)) ? undefined : parsed(input.value));
  const hint = question.edges ? 'Only the group of your number counts.' : span(question);
  const shown = () => measured(written(read()), unit);
  return typed({ ...question, hint }, input, () => whyNot(input.value, question), read, shown);
}

function text(question, { suggestions }) {
  const choices = el('datalist', { id: `list-${question.name}` },
    ...suggestions.map((value) => el('option', { value })));
  const input = el('input', { type: 'text', list: choices.id, spellcheck: 'false', autocapitalize: 'none' });
  const hint = suggestions.length ? 'Any text; please take a suggestion if one fits.' : 'Any text.';
  const { fold, max_bytes: most } = question;
  const bytes = () => utf8(tidy(input.value, fold)).length;
  const read = () => (bytes() && bytes() <= most ? input.value : undefined);
  const missing = () => `Please write something, in at most ${most} bytes: one for each plain letter, more for others.`;
  return typed({ ...question, hint }, input, missing, read, read, choices);
}

/** By kind: an input for a question, with `labels` in words, the ids or `suggestions`. */
export const FIELDS = {
  choice: (question, words) => listed(question, words, question.answers),
  'yes/no': (question, words) => listed(question, words, [true, false]),
  choices: boxes,
  number,
  text,
};

export const fieldOf = (question, words) =>
  FIELDS[question.kind]({ ...question, ask: words.ask, unit: words.unit }, words);

/** A public field: its value is sent as it is. */
export const openField = ({ name, values }, { ask, labels }) =>
  oneOf({ name, ask, hint: 'This is sent as it is. It is not protected.' }, labels, values);
