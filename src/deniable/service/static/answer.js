// The questionnaire: answers are asked, randomised here, shown as they would leave, and then sent.
import { honest } from '/budget.js';
import { Client } from '/client.js';
import { fieldOf } from '/fields.js';
import { odds, total } from '/odds.js';
import { byId, el, secret, show } from '/page.js';

const WORDS = {
  'no-key': 'This collection needs a key. Please use the whole link that you were given.',
  'bad-round': 'There is no such round. Please use the link that you were given.',
  'other-collection': 'The questions have changed since this page was opened. Please load it again.',
  'no-answer': 'The collector does not answer. Sending again is safe: it is counted once.',
  busy: 'The collector is busy. Sending again is safe: it is counted once.',
  unavailable: 'The collector cannot keep anything now. Sending again is safe: it is counted once.',
  memo: 'This device cannot remember what it has to remember, so nothing is sent.',
};
const explain = ({ type, message }) => WORDS[type] ?? `That did not work: ${message}`;

function step(name) {
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== name;
  show(byId('trouble'), '');
  scrollTo(0, 0);
  byId(name).querySelector('h2').focus();
}

function fail(error) {
  show(byId('trouble'), explain(error));
  byId('trouble').focus();
}

function promise({ divide, rounds, questions }, round) {
  const parts = ['Your device randomises each answer before anything leaves it.'];
  if (divide === 'sampled') {
    parts.unshift(`You are asked 1 of ${questions.length} questions. Your device drew it, whatever your answer is.`);
  }
  if (rounds > 1) {
    parts.unshift(`Round ${round} of ${rounds}. Please use the same device and browser in all of them: it remembers what it needs.`);
  }
  return parts.join(' ');
}

const thanks = (counted, { rounds }) =>
  `${counted ? 'Your reports were counted.' : 'Your reports had been counted before.'} Please answer only once`
  + `${rounds > 1 ? ' in each round' : ''}: every report that you add tells a little more about you.`;

/** A sheet with new coins and the same questions. */
function renewed(client, round, { questions: [{ name }] }) {
  let sheet;
  do sheet = client.begin(round); while (sheet.questions[0].name !== name);
  return sheet;
}

function reportOf(question, answer, hex) {
  const { says, why } = odds(question, hex);
  return el('article', { class: 'card' },
    el('h3', {}, question.ask),
    el('dl', { class: 'pair' },
      el('div', {}, el('dt', {}, 'stays here: your answer'), el('dd', {}, answer)),
      el('div', { class: 'leaves' }, el('dt', {}, 'leaves: the report says'), el('dd', {}, says))),
    ...why.map((words) => el('p', {}, words)));
}

function readAll(fields) {
  const answers = fields.map((field) => field.read());
  const wrong = answers.indexOf(undefined);
  if (wrong >= 0) fields[wrong].focus();
  return wrong < 0 && answers;
}

/** Whether something was sent that may be counted although no answer said so; then only the same may follow. */
let doubtful = false;

async function watched(url, request) {
  if (request.method !== 'POST') return fetch(url, request);
  const before = doubtful;
  doubtful = true;
  const response = await fetch(url, request);
  const refused = response.status >= 400 && response.status < 500 && response.status !== 429;
  if (refused) doubtful = before;
  return response;
}

async function questionnaire(client, round) {
  let sheet = client.begin(round);
  const { questions } = sheet;
  const fields = questions.map(fieldOf);
  byId('fields').replaceChildren(...fields.map((field) => field.node));
  byId('promise').textContent = promise(client.manifest, round);

  async function preview() {
    const answers = readAll(fields);
    if (!answers) return;
    const { body, reports } = await sheet.prepare(
      Object.fromEntries(questions.map(({ name }, i) => [name, answers[i]])));
    byId('reports').replaceChildren(
      ...questions.map((question, i) => reportOf(question, answers[i], reports[question.name])));
    byId('total').textContent = total(client.manifest);
    byId('body').textContent = body;
    step('check');
  }

  async function send() {
    byId('send').disabled = byId('back').disabled = true;
    byId('sending').textContent = 'Sending …';
    try {
      const { counted } = await sheet.send();
      byId('thanks').textContent = thanks(counted, client.manifest);
      for (const id of ['ask', 'check']) byId(id).remove();
      step('done');
    } catch (error) {
      byId('sending').textContent = '';
      byId('send').disabled = false;
      byId('back').disabled = byId('back').hidden = byId('again').hidden = doubtful;
      if (doubtful) byId('send').textContent = 'Send the same again';
      fail(error);
    }
  }

  byId('form').addEventListener('submit', (event) => {
    event.preventDefault();
    preview().catch(fail);
  });
  byId('send').addEventListener('click', send);
  byId('back').addEventListener('click', () => {
    sheet = renewed(client, round, sheet);
    step('ask');
  });
}

async function start() {
  if (!isSecureContext) throw Error('your browser randomises only on pages that came over HTTPS.');
  const client = await Client.load('/v1/manifest', { key: secret('key'), fetch: watched });
  if (!honest(client.manifest)) throw Error('these questions would reveal more than they promise.');
  const { title, about } = client.manifest;
  document.title = byId('title').textContent = title;
  show(byId('about'), about);
  const round = Number(new URLSearchParams(location.search).get('round') ?? 1);
  await questionnaire(client, round);
  byId('ask').hidden = false;
}

start().catch(fail);
