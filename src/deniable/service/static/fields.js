// One input for each kind of question; errors are tied to it.
import { el } from '/page.js';

const FEW = 8;

function frame(question, input, hint) {
  const { name } = question;
  const error = el('p', { id: `error-${name}`, class: 'error' });
  const about = hint ? [el('p', { id: `hint-${name}`, class: 'hint' }, hint)] : [];
  input.setAttribute('aria-describedby', `${hint ? `hint-${name} ` : ''}error-${name}`);
  return { error, about };
}

/** What `read` returns is an answer, or undefined where there is none. */
function field(node, focus, input, error, missing, read) {
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
  };
}

function radios(question, answers) {
  const { name, ask } = question;
  const inputs = answers.map((_, i) => el('input', { type: 'radio', name, value: i, id: `${name}-${i}` }));
  const lines = inputs.map((input, i) => el('label', { class: 'radio' }, input, el('span', {}, answers[i])));
  const node = el('fieldset', { class: 'card', role: 'radiogroup' }, el('legend', {}, ask));
  const { error } = frame(question, node);
  node.append(...lines, error);
  return field(node, () => inputs[0].focus(), node, error, 'Please choose one.', () =>
    answers[inputs.findIndex((input) => input.checked)]);
}

function labelled(question, input, missing, read, hint, ...more) {
  input.id = `field-${question.name}`; // a question may be named like a part of the page
  const { error, about } = frame(question, input, hint);
  const label = el('label', { for: input.id, class: 'ask' }, question.ask);
  const node = el('div', { class: 'card' }, label, ...about, input, ...more, error);
  return field(node, () => input.focus(), input, error, missing, read);
}

function list(question, answers) {
  const options = answers.map((answer, i) => el('option', { value: i }, answer));
  const input = el('select', {}, el('option', { value: '' }, 'Choose …'), ...options);
  return labelled(question, input, 'Please choose one.', () => answers[input.selectedIndex - 1]);
}

/** 6.5, and 6,5 as much of the world writes it. 1,000 and 1.000 may be 1 or 1000: no answer. */
function parsed(written) {
  const text = written.trim();
  const plain = /^[-+]?(\d+([.,]\d*)?|[.,]\d+)$/.test(text) && !/^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(text);
  const value = Number(text.replace(',', '.'));
  return plain && Number.isFinite(value) ? value : undefined;
}

function number(question) {
  const input = el('input', { type: 'text', inputmode: 'decimal', autocomplete: 'off' });
  const groups = question.mechanism.domain.labels;
  const hint = groups.length <= FEW ? `Only the group counts: ${groups.join('; ')}.` : '';
  return labelled(question, input, 'Please write a number, like 6.5 or 1000.',
    () => parsed(input.value), hint);
}

function text(question) {
  const choices = el('datalist', { id: `list-${question.name}` },
    ...question.candidates.map((value) => el('option', { value })));
  const input = el('input', { type: 'text', list: choices.id, spellcheck: 'false', autocapitalize: 'none' });
  const hint = question.candidates.length
    ? 'Any text; please take a suggestion if one fits.' : 'Any text.';
  const read = () => (input.value.trim() ? input.value : undefined);
  return labelled(question, input, 'Please write something.', read, hint, choices);
}

const choice = (question) => {
  const { labels } = question.mechanism.domain;
  return (labels.length > FEW ? list : radios)(question, labels);
};

const KINDS = { choice, 'yes/no': choice, number, text };
export const fieldOf = (question) => KINDS[question.kind](question);
