// The questionnaire: answers are asked, randomised here, shown as they would leave, and then sent.
import { Client } from '/client.js';
import { loadTexts } from '/client/texts.js';
import { fieldOf, openField, ranges } from '/fields.js';
import { atMost, odds, total } from '/odds.js';
import { byId, el, isolated, secret, show } from '/page.js';

const WORDS = {
  'no-key': 'This collection needs a key. Please use the whole link that you were given.',
  closed: 'This collection is closed. It takes no answers now.',
  'bad-round': 'There is no such round. Please use the link that you were given.',
  unsupported: 'This page does not know this kind of question. Please load it again, or tell the people who ask.',
  'broken-promise': 'These questions would reveal more about you than they promise. This page does not ask them.',
  'too-much': 'These questions may reveal more about you than this page allows (epsilon above 8). It does not ask them.',
  'other-collection': 'The questions have changed since this page was opened. Please load it again.',
  changed: 'This browser has answered other questions here meanwhile. Please load this page again.',
  answered: 'This browser has answered already, perhaps in another tab or in an earlier step. Please load this page again.',
  prepared: 'This browser has answered another round meanwhile. Please go back and look at your report again.',
  'no-answer': 'The collector does not answer. Please try again later.',
  busy: 'The collector is busy. Please try again later.',
  unavailable: 'The collector cannot keep anything now. Please try again later.',
  memo: 'This browser cannot keep what it has to remember, so nothing is sent. A private window or blocked cookies may be the reason.',
  coins: 'This device does not give random numbers, so nothing is sent.',
};
const explain = ({ type, message }) =>
  (Object.hasOwn(WORDS, type) ? WORDS[type] : `That did not work: ${message.replace(/[.]?$/, '.')}`);
const SAFE = ' Sending the same again is safe: it is counted once.';

function step(name) {
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== name;
  show(byId('trouble'), '');
  scrollTo(0, 0);
  byId(name).querySelector('h2').focus();
}

function fail(error, more = '') {
  show(byId('trouble'), explain(error) + more);
  byId('trouble').focus();
}

function promise({ rounds, questions, fields }, asked, round) {
  const but = fields.length ? ', but for what is sent as it is' : '';
  const parts = [`Your device randomises each answer before anything leaves it${but}.`];
  if (asked.length < questions.length) {
    const which = asked.length > 1 ? 'them, whatever your answers are' : 'it, whatever your answer is';
    parts.unshift(`You are asked ${asked.length} of ${questions.length} questions. Your device drew ${which}.`);
  }
  if (rounds > 1) {
    parts.unshift(`Round ${round} of ${rounds}. Please use the same device and browser in all of them: it remembers what it needs.`);
  }
  return parts.join(' ');
}

const stays = 'Your answers stay here, but for what is sent as it is. Your device scrambled all others. '
  + 'Only what is shown here leaves it.';

const thanks = (counted, { rounds }) =>
  `${counted ? 'Your answers were counted.' : 'Your answers had been counted before.'} Please answer only once`
  + `${rounds > 1 ? ' in each round' : ''}: sending several reports would reveal more about you.`;

const keeps = ({ rounds }) => 'Your answers are no longer on this page. This browser keeps the report, so that it sends no other one'
  + `${rounds > 1 ? ', and what it needs to remember for the other rounds' : ''}. If you clear its data, `
  + 'or the collector moves to another address, the browser no longer knows that you answered.';

/** The words of a question: how it is asked, and the labels of its answers if they are listed. */
async function wordsOf({ name }, { domains }, texts) {
  const domain = domains[name];
  // The client's own names of ranges are one more module to load.
  const ids = domain.edges ? ranges(domain.edges) : await domain.form.names?.(domain);
  const labels = ids && [...texts.questions.answers(name, ids), ...domain.optional ? ['no answer'] : []];
  const { ask, unit } = texts.questions;
  return { ask: ask(name), unit: unit(name), labels, suggestions: texts.candidates(name) };
}

/** A report, beside the answers that it was made of: of drawn questions, only the drawn one. */
function reportOf({ name, of }, { reports }, row, words) {
  const joined = (texts) => (texts.length > 1 ? texts.map(isolated).join(' · ') : texts[0]);
  const asks = joined(of.map((question) => words[question].ask));
  const { says, why } = odds(reports.find((one) => one.name === name), row, words[of[0]].labels ?? []);
  return el('article', { class: 'card' },
    el('h3', {}, asks),
    el('dl', { class: 'pair' },
      el('div', {}, el('dt', {}, 'Your answer stays here'), el('dd', {}, joined(of.map((question) => words[question].shown())))),
      el('div', { class: 'leaves' }, el('dt', {}, 'Your device will send'), el('dd', {}, says))),
    el('p', {}, el('em', {}, 'This may or may not be your answer. That is what protects you.')),
    el('details', {}, el('summary', {}, 'Details'), ...why.map((sentence) => el('p', {}, sentence))));
}

const shown = ({ fields }, texts, open) =>
  fields.map(({ name }, i) => `${isolated(texts.fields.ask(name))} ${isolated(open[i].shown())}`).join('; ');

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** By name what was answered, or undefined where something is missing. */
function readAll(names, fields) {
  const answers = fields.map((field) => field.read());
  const wrong = answers.indexOf(undefined);
  if (wrong >= 0) fields[wrong].focus();
  return wrong < 0 ? Object.fromEntries(names.map((name, i) => [name, answers[i]])) : undefined;
}

/** Sends what the sheet has, and tells how that went. */
async function send(sheet, manifest, button, status) {
  const leave = byId('back');
  button.disabled = leave.disabled = true;
  status.textContent = 'Sending …';
  try {
    const { counted } = await sheet.send();
    byId('thanks').textContent = thanks(counted, manifest);
    byId('keeps').textContent = keeps(manifest);
    // Shown, not linked: a browser that visits the address twice tells its ETag.
    byId('manifest').textContent = JSON.stringify(manifest, null, 1);
    for (const id of ['ask', 'check', 'kept']) byId(id).remove();
    step('done');
  } catch (error) {
    status.textContent = '';
    // What was posted may have been kept whatever the answer says: only the same may follow.
    button.disabled = leave.disabled = false;
    leave.hidden = byId('again').hidden = Boolean(sheet.body);
    if (sheet.body) button.textContent = 'Send the same again';
    fail(error, sheet.body ? SAFE : '');
  }
}

async function questionnaire(client, texts, sheet, round) {
  const { manifest } = client;
  const { questions } = sheet;
  const words = {};
  for (const question of questions) words[question.name] = await wordsOf(question, client, texts);
  const open = manifest.fields.map((field) => openField(field, {
    ask: texts.fields.ask(field.name), labels: texts.fields.answers(field.name, field.values),
  }));
  const fields = [...questions.map((question) => fieldOf(question, words[question.name])), ...open];
  questions.forEach(({ name }, i) => { words[name].shown = fields[i].shown; });
  const names = [...questions, ...manifest.fields].map(({ name }) => name);
  byId('fields').replaceChildren(...fields.map((field) => field.node));
  byId('promise').textContent = promise(manifest, questions, round);
  if (open.length) byId('stays').textContent = stays;

  async function preview() {
    const answers = readAll(names, fields);
    if (!answers) return;
    const { body, reports } = await sheet.prepare(answers, answers);
    byId('reports').replaceChildren(...sheet.reports.map((report) =>
      reportOf(report, client, bytesOf(reports[report.name]), words)));
    show(byId('open'), manifest.fields.length ? `Sent as it is: ${shown(manifest, texts, open)}.` : '');
    byId('total').textContent = total(manifest);
    byId('body').textContent = body;
    step('check');
  }

  byId('form').addEventListener('submit', (event) => {
    event.preventDefault();
    preview().catch((error) => fail(error));
  });
  byId('send').addEventListener('click', () => send(sheet, manifest, byId('send'), byId('sending')));
  byId('back').addEventListener('click', () => step('ask'));
  byId('ask').hidden = false;
}

/** This round was answered: there is nothing else to send. */
function kept({ manifest }, sheet, round) {
  const when = manifest.rounds > 1 ? ` in round ${round}` : '';
  byId('before').textContent = `This browser has sent a report${when}, or has tried to. `
    + 'If you are not sure that it arrived, send the same again: it is counted once, and tells nothing more about you.';
  byId('same').textContent = sheet.body;
  byId('resend').addEventListener('click', () => send(sheet, manifest, byId('resend'), byId('resending')));
  step('kept');
}

/** Another collection than the one that was answered here: people are asked first. */
function changed({ digest, spent }, { manifest: { epsilon } }, options, round) {
  byId('budgets').textContent = 'This browser has answered other questions of this collector before. '
    + `What it sent then may reveal up to epsilon ${atMost(spent)} about you. The new questions may reveal `
    + `up to epsilon ${atMost(epsilon)} more. Please answer them only if you expected new questions.`;
  const agree = byId('agree');
  agree.disabled = false;
  agree.onclick = () => {
    agree.disabled = true; // once, also for who clicks twice
    enter({ ...options, another: digest }, round).catch((error) => fail(error));
  };
  step('changed');
}

async function enter(options, round) {
  const client = await Client.load('/v2/manifest', options);
  const texts = await loadTexts('/v2/texts', client);
  document.title = byId('title').textContent = texts.title;
  show(byId('about'), texts.about);
  for (const id of ['title', 'about', 'fields', 'reports']) byId(id).lang = texts.language;
  let sheet;
  try {
    sheet = await client.begin(round);
  } catch (error) {
    if (error.type !== 'changed') throw error;
    return changed(error, client, options, round);
  }
  byId('changed').hidden = true;
  return sheet.body ? kept(client, sheet, round) : questionnaire(client, texts, sheet, round);
}

/** Refuses at the door, not after the last question. A collector that does not say admits everybody. */
async function admission(key) {
  if (/[^ -~]/.test(key)) throw { type: 'no-key' }; // no header carries it
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const alone = { cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' };
  const signal = AbortSignal.timeout?.(30_000);
  const response = await fetch('/v2/admission', { headers, signal, ...alone }).catch(() => null);
  if (!response) throw { type: 'no-answer' };
  if (response.status === 404) return;
  if (response.status === 401) throw { type: 'no-key' };
  if (!response.ok) throw Error('the collector takes no answers now. Please come back later');
  const { needs, open } = await response.json();
  if (!open) throw { type: 'closed' };
  if (needs === 'key' && !key) throw { type: 'no-key' };
}

async function start() {
  if (!isSecureContext) throw Error('your browser randomises only on pages that came over HTTPS');
  const key = secret('key');
  await admission(key);
  await enter({ key }, Number(new URLSearchParams(location.search).get('round') ?? 1));
}

start().catch((error) => fail(error));
