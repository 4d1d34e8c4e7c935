// One input for each kind of question; errors are tied to it.
import { digits, tidy, utf8 } from '/client/core.js';
import { el, isolated } from '/page.js';

const FEW = 8;
const SKIP = 'I would rather not answer';

function frame(name, input, hint) {
  const error = el('p', { id: `error-${name}`, class: 'error' });
  const about = hint ? [el('p', { id: `hint-${name}`, class: 'hint' }, hint)] : [];
  input.setAttribute('aria-describedby', `${hint ? `hint-${name} ` : ''}error-${name}`);
  return { error, about };
}

/**
 * What `read` returns is an answer, null for a skip, or undefined where there is neither; what
 * `shown` returns are the words of that answer.
 */
function field(node, focus, input, error, missing, read, shown) {
  const mark = (wrong) => {
    error.textContent = wrong ? missing : '';
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

function radios({ name, ask, hint }, labels, answers) {
  const inputs = labels.map((_, i) => el('input', { type: 'radio', name, value: i, id: `${name}-${i}` }));
  const lines = inputs.map((input, i) => el('label', { class: 'radio' }, input, el('span', {}, labels[i])));
  const node = el('fieldset', { class: 'card', role: 'radiogroup' }, el('legend', {}, ask));
  const { error, about } = frame(name, node, hint);
  node.append(...about, ...lines, error);
  const chosen = (list) => list[inputs.findIndex((input) => input.checked)];
  return field(node, () => inputs[0].focus(), node, error, 'Please choose one.',
    () => chosen(answers), () => chosen(labels));
}

function labelled({ name, ask, hint }, input, missing, read, shown, ...more) {
  input.id = `field-${name}`; // a question may be named like a part of the page
  const { error, about } = frame(name, input, hint);
  const label = el('label', { for: input.id, class: 'ask' }, ask);
  const node = el('div', { class: 'card' }, label, ...about, input, ...more, error);
  return field(node, () => input.focus(), input, error, missing, read, shown);
}

function list(question, labels, answers) {
  const options = labels.map((label, i) => el('option', { value: i }, label));
  const input = el('select', {}, el('option', { value: '' }, 'Choose …'), ...options);
  const chosen = (list) => list[input.selectedIndex - 1];
  return labelled(question, input, 'Please choose one.', () => chosen(answers), () => chosen(labels));
}

const oneOf = (question, labels, answers) =>
  (labels.length > FEW ? list : radios)(question, labels, answers);

/** One of some answers, of which the last is a skip if there may be one. */
function listed(question, { labels }, answers) {
  const skip = question.optional;
  return oneOf(question, skip ? [...labels.slice(0, -1), SKIP] : labels, skip ? [...answers, null] : answers);
}

/** An input that people fill in, and a box for those who skip it. */
function typed(question, input, missing, read, ...more) {
  if (!question.optional) return labelled(question, input, missing, read, read, ...more);
  const box = el('input', { type: 'checkbox', id: `skip-${question.name}` });
  box.addEventListener('change', () => { input.disabled = box.checked; });
  const skip = el('label', { class: 'radio' }, box, el('span', {}, SKIP));
  const unless = (skipped) => () => (box.checked ? skipped : read());
  return labelled(question, input, `${missing} Or tick the box.`, unless(null), unless(SKIP), ...more, skip);
}

/** 6.5, and 6,5 as much of the world writes it. 1,000 and 1.000 may be 1 or 1000: no answer. */
function parsed(written) {
  const text = written.trim();
  const plain = /^[-+]?(\d+([.,]\d*)?|[.,]\d+)$/.test(text) && !/^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(text);
  const value = Number(text.replace(',', '.'));
  return plain && Number.isFinite(value) ? value : undefined;
}

/** The groups of numbers between edges, in words. */
export function ranges(edges) {
  const words = edges.map(digits);
  return [`below ${words[0]}`, ...words.slice(1).map((word, i) => `${words[i]} to ${word}`), `${words.at(-1)} or more`];
}

function groups({ optional }, labels) {
  const counted = optional ? labels.slice(0, -1) : labels;
  return labels.length <= FEW ? `Only the group counts: ${counted.map(isolated).join('; ')}.` : '';
}

function span({ lo, hi, step, outside }) {
  const steps = step ? ` Your device rounds it to steps of ${step}.` : '';
  const beyond = outside === 'clip' ? ' Your device moves answers beyond these ends to the nearest end.' : '';
  return `From ${lo} to ${hi}.${beyond}${steps}`;
}

function number(question, { labels }) {
  const { lo, hi, outside } = question;
  const input = el('input', { type: 'text', inputmode: 'decimal', autocomplete: 'off' });
  const refused = (x) => outside === 'refuse' && (x < lo || x > hi);
  const read = () => (refused(parsed(input.value)) ? undefined : parsed(input.value));
  const missing = outside === 'refuse' ? `Please write a number from ${lo} to ${hi}.` : 'Please write a number, like 6.5 or 1000.';
  return typed({ ...question, hint: labels ? groups(question, labels) : span(question) }, input, missing, read);
}

function text(question, { suggestions }) {
  const choices = el('datalist', { id: `list-${question.name}` },
    ...suggestions.map((value) => el('option', { value })));
  const input = el('input', { type: 'text', list: choices.id, spellcheck: 'false', autocapitalize: 'none' });
  const hint = suggestions.length ? 'Any text; please take a suggestion if one fits.' : 'Any text.';
  const { fold, max_bytes: most } = question;
  const bytes = () => utf8(tidy(input.value, fold)).length;
  const read = () => (bytes() && bytes() <= most ? input.value : undefined);
  return typed({ ...question, hint }, input, `Please write something, in at most ${most} bytes: one for each plain letter, more for others.`, read, choices);
}

/** By kind: an input for a question, with `labels` in words, the ids or `suggestions`. */
export const FIELDS = {
  choice: (question, words) => listed(question, words, question.answers),
  'yes/no': (question, words) => listed(question, words, [true, false]),
  number,
  text,
};

export const fieldOf = (question, words) => FIELDS[question.kind]({ ...question, ask: words.ask }, words);

/** A public field: its value is sent as it is. */
export const openField = ({ name, values }, { ask, labels }) =>
  oneOf({ name, ask, hint: 'This is sent as it is. It is not protected.' }, labels, values);
