// Asks how much there is every two seconds, and for an estimate only where there is more.
import { Card } from '/card.js';
import { byId, el, show } from '/page.js';
import { askJSON, dropToken, hasToken, keepToken } from '/server.js';

const EVERY = 2_000;
const LONGEST = 60_000;
const cards = new Map();

/** When everything that is shown was last right. */
let updated = null;
let woken = false;
let rise = () => {};

/** End the present pause, or the next one: somebody wants to see something now. */
function wake() {
  woken = true;
  rise();
}

async function pause(ms) {
  if (!woken) {
    await new Promise((resolve) => {
      rise = resolve;
      if (ms) setTimeout(resolve, ms);
    });
  }
  woken = false;
}

function say(kind, words) {
  const state = byId('state');
  state.dataset.kind = kind;
  if (state.textContent !== words) state.textContent = words;
}

function facts(status) {
  const rounds = status.rounds > 1 ? [['rounds', status.rounds]] : [];
  const drawn = status.questions.some(({ share }) => share < 1);
  return [
    ['ε per respondent', status.epsilon.toFixed(2)],
    ['each respondent answers', drawn ? 'the questions that the device draws' : 'all questions'],
    ...rounds,
  ].map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value)));
}

/** Since when there are counts only, in words; empty if all reports are there. */
function onlyCounted(before) {
  if (!before) return '';
  const form = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' };
  const day = new Date(before).toLocaleDateString('en-GB', form);
  return `Reports before ${day} are only counted. Methods that need the reports are not offered any more.`;
}

function begin(status) {
  document.title = `${status.title} · dashboard`;
  byId('title').textContent = status.title;
  show(byId('about'), status.about);
  byId('facts').replaceChildren(...facts(status));
  byId('foot').replaceChildren(
    el('a', { href: '/answer' }, 'The questionnaire'), ` · collection ${status.digest.slice(0, 16)}`);
  for (const question of status.questions) {
    cards.set(question.name, new Card({ ...question, rounds: status.rounds }, wake));
  }
  byId('cards').replaceChildren(...[...cards.values()].map((card) => card.node));
}

async function refresh() {
  const status = await askJSON('/v2/status');
  if (byId('state').dataset.kind === 'trouble') say('waiting', 'Loading');
  if (!cards.size) begin(status);
  show(byId('purged'), onlyCounted(status.only_counted_before));
  const asked = status.questions.map((question) => cards.get(question.name).update(question));
  const failed = (await Promise.allSettled(asked)).find(({ reason }) => reason);
  if (failed) throw failed.reason;
}

/** Nobody without a token gets further than this. */
async function gate(words) {
  dropToken();
  say('waiting', 'Waiting for a token');
  show(byId('refused'), words);
  byId('gate').hidden = false;
  byId('token').focus();
  while (!hasToken()) await pause();
  byId('gate').hidden = true;
  say('waiting', 'Loading');
}

byId('gate').addEventListener('submit', (event) => {
  event.preventDefault();
  keepToken(byId('token').value.trim());
  byId('token').value = '';
  wake();
});

/** How long to wait after a failure: twice as long each time. */
function stumble(error, failures) {
  const wait = Math.min(LONGEST, EVERY * 2 ** failures);
  const last = updated ? ` Last update ${updated.toLocaleTimeString()}.` : '';
  say('trouble', `${error.message}${last} Trying again in ${wait / 1000} s.`);
  return wait;
}

async function run() {
  for (let failures = 0; ;) {
    if (!hasToken()) await gate('');
    if (document.hidden) {
      say('paused', 'Paused while nobody looks');
      await pause();
      continue;
    }
    const began = performance.now();
    try {
      await refresh();
      failures = 0;
      updated = new Date();
      say('live', 'Live');
      // A server that needs long is asked less often.
      await pause(Math.max(EVERY, 2 * (performance.now() - began)));
    } catch (error) {
      if (error.status === 401) await gate('The collector does not know this token.');
      else await pause(stumble(error, ++failures));
    }
  }
}

let resized;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(redraw, 150);
});
const redraw = () => cards.forEach((card) => card.redraw());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.addEventListener('visibilitychange', wake);
run();
