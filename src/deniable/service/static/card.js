// One question on the dashboard.
import { draw, heightOf } from '/chart.js';
import { el } from '/page.js';
import { ask, askJSON } from '/server.js';

const MOST = 40;
/** Below so many answers a chart would show chance, and nearly single reports. */
const LEAST = 100;
const USUAL = 'bayes';
/** What hinders all questions, not one: no answer, no token, too much at once. */
const COMMON = [0, 401, 429, 503];
const number = (x) => x.toLocaleString('en');
const percent = (x) => `${(100 * x).toFixed(1)}\u00a0%`;

const few = (n) => {
  const answers = n === 1 ? '1 answer' : `${number(n)} answers`;
  return `${n ? `${answers} so far` : 'No answers yet'}. Charts appear from ${LEAST} answers.`;
};

const words = ({ n, method, confidence, population }) =>
  `Bars: ${method}, from ${number(n)} reports. Lines: ${100 * confidence}\u00a0% intervals about the ${population}.`;

function tableOf(rows, total) {
  const heads = ['answer', 'share', 'from', 'to'].map((name) => el('th', { scope: 'col' }, name));
  const lines = rows.map(({ value, frequency, low, high }) => el('tr', {},
    el('th', { scope: 'row' }, value), ...[frequency, low, high].map((x) => el('td', {}, percent(x)))));
  const table = el('table', {}, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...lines));
  if (rows.length < total) table.prepend(el('caption', {}, `the ${MOST} most frequent of ${total}`));
  return table;
}

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export class Card {
  #asked = '';
  #found = null;
  #latest = true;

  /** `wake` is called when somebody wants to see something else. */
  constructor(question, bars, wake) {
    this.name = question.name;
    this.bars = bars;
    this.count = el('dd', {}, 'loading');
    this.method = el('select', { id: `method-${this.name}`, onchange: wake },
      ...question.methods.map((name) => el('option', { selected: name === USUAL }, name)));
    this.round = el('select', { id: `round-${this.name}`, onchange: () => {
      this.#latest = false;
      wake();
    } });
    this.wanted = el('textarea', { id: `wanted-${this.name}`, rows: 3, spellcheck: 'false', onchange: wake });
    this.wanted.value = question.candidates.join('\n');
    this.figure = el('div', { class: 'chart' });
    this.figure.style.minHeight = `${heightOf(Math.min(bars, MOST))}px`;
    this.caption = el('figcaption', {}, 'Loading …');
    this.numbers = el('div', { class: 'scroll' });
    this.node = this.#node(question);
  }

  #node(question) {
    const control = (label, input) => el('div', {}, el('label', { for: input.id }, label), input);
    const controls = [control('Decoder', this.method)];
    if (question.rounds > 1) controls.push(control('Round', this.round));
    if (question.kind === 'text') controls.push(control('Look for (one text a line)', this.wanted));
    const facts = { reports: this.count, mechanism: question.mechanism, 'ε of a report': question.epsilon.toFixed(2) };
    const pairs = Object.entries(facts).map(([name, value]) =>
      el('div', {}, el('dt', {}, name), value instanceof Node ? value : el('dd', {}, value)));
    const file = (name) => el('button', {
      type: 'button', onclick: () => this.#download(name.toLowerCase()),
    }, name);
    return el('article', { class: 'card', id: `card-${this.name}`, 'aria-labelledby': `ask-${this.name}` },
      el('h2', { id: `ask-${this.name}` }, question.ask),
      el('dl', { class: 'facts' }, ...pairs),
      el('div', { class: 'controls' }, ...controls),
      el('figure', {}, this.figure, this.caption),
      el('details', {}, el('summary', {}, 'The numbers'), this.numbers),
      el('p', { class: 'actions' }, 'Download ', ...['CSV', 'JSON', 'Arrow'].map(file)));
  }

  #wanted() {
    return new Set(this.wanted.value.split('\n').filter(Boolean));
  }

  /** What is asked for; the page shows only the most frequent of very many values. */
  #path(format, more = {}) {
    const query = new URLSearchParams({ format, round: this.round.value || 1, method: this.method.value, ...more });
    for (const text of this.#wanted()) query.append('candidate', text);
    return `/v1/estimates/${this.name}?${query}`;
  }

  /** Show how much there is, and ask for an estimate if that or the wish is new. */
  async update({ reports }) {
    this.#rounds(Object.keys(reports));
    const n = reports[this.round.value || 1] ?? 0;
    this.count.textContent = number(n);
    const asking = `${n} ${this.#path('json')}`;
    if (asking === this.#asked) return;
    const enough = n >= LEAST;
    if (enough && !this.#found?.values) this.caption.textContent = 'Estimating …';
    this.#found = enough ? await this.#estimate() : { problem: few(n) };
    this.#asked = asking;
    await this.redraw();
  }

  #rounds(numbers) {
    const known = new Set([...this.round.options].map((option) => option.value));
    const missing = (numbers.length ? numbers : ['1']).filter((name) => !known.has(name));
    if (!missing.length) return;
    const all = [...known, ...missing].sort((a, b) => a - b);
    const chosen = this.#latest ? all.at(-1) : this.round.value;
    this.round.replaceChildren(...all.map((name) => el('option', { selected: name === chosen }, name)));
  }

  /** The estimate, or why there is none. */
  async #estimate() {
    try {
      return await askJSON(this.#path('json', { most: MOST }));
    } catch (error) {
      if (COMMON.includes(error.status)) throw error;
      return { problem: error.message };
    }
  }

  async redraw() {
    if (!this.#found) return;
    const { problem, values } = this.#found;
    this.caption.textContent = problem ?? words(this.#found);
    this.node.classList.toggle('empty', !values);
    if (!values) {
      this.figure.replaceChildren();
      this.numbers.replaceChildren();
      return;
    }
    const wanted = this.#wanted().size;  // and all others, of texts
    this.numbers.replaceChildren(tableOf(values, wanted ? wanted + 1 : this.bars));
    await draw(this.figure, values, this.caption.textContent).catch((error) => {
      this.caption.textContent = `${error.message} The numbers are below.`;
    });
  }

  async #download(format) {
    const name = `${this.name}-round-${this.round.value || 1}-${this.method.value}.${format}`;
    try {
      save(await ask(this.#path(format)), name);
    } catch (error) {
      this.caption.textContent = error.message;
    }
  }
}
