// One question on the dashboard: the server says what may be asked, and how the answer looks.
import { draw } from '/chart.js';
import { el } from '/page.js';
import { ask, askJSON } from '/server.js';

const MOST = 40;
/** Below so many answers a chart would show chance, and nearly single reports. */
const LEAST = 100;
/** What hinders all questions, not one: no answer, no token, too much at once. */
const COMMON = [0, 401, 429, 503];
const number = (x) => x.toLocaleString('en');

const few = (n) => {
  const answers = n === 1 ? '1 answer' : `${number(n)} answers`;
  return `${n ? `${answers} so far` : 'No answers yet'}. Charts appear from ${LEAST} answers.`;
};

/** Columns of texts as a table; the first has the names of the rows. */
function tableOf(columns) {
  const names = Object.keys(columns);
  const [first, ...others] = Object.values(columns);
  const heads = names.map((name) => el('th', { scope: 'col' }, name));
  const lines = first.map((label, i) => el('tr', {},
    el('th', { scope: 'row' }, label), ...others.map((cells) => el('td', {}, cells[i]))));
  return el('table', {}, el('thead', {}, el('tr', {}, ...heads)), el('tbody', {}, ...lines));
}

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The control of something that may be asked: a text, or several, one per line. */
function control(id, { several, usual }, onchange) {
  const plain = { id, spellcheck: 'false', onchange };
  const rows = Math.min(Math.max(usual.length, 1), 3);
  const input = several ? el('textarea', { ...plain, rows }) : el('input', plain);
  input.value = usual.join('\n');
  return input;
}

export class Card {
  #asked = '';
  #found = null;
  #latest = true;

  /** `wake` is called when somebody wants to see something else. */
  constructor(question, wake) {
    this.name = question.name;
    this.share = question.share;
    this.count = el('dd', {}, 'loading');
    this.method = el('select', { id: `method-${this.name}`, onchange: wake },
      ...question.methods.map((name) => el('option', { selected: name === question.method }, name)));
    this.round = el('select', { id: `round-${this.name}`, onchange: () => {
      this.#latest = false;
      wake();
    } });
    this.view = el('select', { id: `view-${this.name}`, onchange: wake });
    this.views = el('div', { hidden: true }, el('label', { for: this.view.id }, 'Chart'), this.view);
    this.queries = new Map(Object.entries(question.queries).map(([name, query]) =>
      [name, control(`${name}-${this.name}`, query, wake)]));
    this.figure = el('div', { class: 'chart' });
    this.caption = el('figcaption', {}, 'Loading …');
    this.numbers = el('div', { class: 'scroll' });
    this.node = this.#node(question);
  }

  #node(question) {
    const labelled = (label, input) => el('div', {}, el('label', { for: input.id }, label), input);
    const controls = [labelled('Method', this.method), this.views];
    if (question.rounds > 1) controls.push(labelled('Round', this.round));
    for (const [name, { label, hint, several }] of Object.entries(question.queries)) {
      const more = [hint, several && 'one per line'].filter(Boolean).join(', ');
      controls.push(labelled(more ? `${label} (${more})` : label, this.queries.get(name)));
    }
    const facts = { reports: this.count, mechanism: question.mechanism, 'ε per report': question.epsilon.toFixed(2) };
    if (this.share < 1) facts['answered by'] = `${(100 * this.share).toFixed()}\u00a0% of respondents, drawn`;
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

  #path(format, more = {}) {
    const query = new URLSearchParams({ format, round: this.round.value || 1, method: this.method.value, ...more });
    for (const [name, input] of this.queries) {
      for (const text of new Set(input.value.split('\n').filter(Boolean))) query.append(name, text);
    }
    return `/v2/estimates/${this.name}?${query}`;
  }

  #chart() {
    return this.#path('chart', { most: MOST, ...this.view.value && { view: this.view.value } });
  }

  /** Show how much there is, and ask for a chart if that is new, or if another is wanted. */
  async update({ reports }) {
    this.#rounds(Object.keys(reports));
    const n = reports[this.round.value || 1] ?? 0;
    this.count.textContent = number(n);
    const asking = `${n} ${this.#chart()}`;
    if (asking === this.#asked) return;
    const answers = Math.round(n * this.share);
    const enough = answers >= LEAST;
    if (enough && !this.#found?.spec) this.caption.textContent = 'Estimating …';
    this.#found = enough ? await this.#estimate() : { problem: few(answers) };
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

  /** The chart, of at most so many values, or why there is none. */
  async #estimate() {
    try {
      return { spec: await askJSON(this.#chart()) };
    } catch (error) {
      if (COMMON.includes(error.status)) throw error;
      return { problem: error.message };
    }
  }

  async redraw() {
    if (!this.#found) return;
    const { problem, spec } = this.#found;
    this.node.classList.toggle('empty', !spec);
    if (!spec) {
      this.caption.textContent = problem;
      this.figure.replaceChildren();
      this.numbers.replaceChildren();
      return;
    }
    const { caption, details, columns, views } = spec.usermeta;
    this.#choices(views);
    this.caption.replaceChildren(caption, el('small', {}, details));
    this.numbers.replaceChildren(tableOf(columns));
    await draw(this.figure, spec).catch((error) => {
      this.caption.textContent = `${error.message} The numbers are below.`;
    });
  }

  /** Which charts there are, if there are several; a choice stays. */
  #choices(views) {
    if (this.view.options.length === views.length) return;
    this.view.replaceChildren(...views.map((name) => el('option', {}, name)));
    this.views.hidden = !views.length;
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
