// Requests of an analyst, a few at a time.
import { secret } from '/page.js';

const PLACE = 'deniable:token';
const LONGEST = 120_000;
/** Browsers keep about six connections to a server; some are left for scripts and files. */
const AT_ONCE = 4;

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const hasToken = () => secret('token') !== '';
export const keepToken = (token) => sessionStorage.setItem(PLACE, token);
export const dropToken = () => sessionStorage.removeItem(PLACE);

async function request(path) {
  const headers = { Authorization: `Bearer ${secret('token')}` };
  const signal = AbortSignal.timeout(LONGEST);
  const response = await fetch(path, { headers, signal, cache: 'no-store' }).catch(() => null);
  if (!response) throw new Refused(0, 'The server does not answer.');
  const body = await response.blob().catch(() => null);
  if (!body) throw new Refused(0, 'The answer was cut off.');
  if (response.ok) return body;
  const detail = await body.text().then((text) => JSON.parse(text).detail).catch(() => null);
  throw new Refused(response.status, detail ?? `The server answered ${response.status}.`);
}

let running = 0;
const waiting = [];

/** The answer as bytes; whoever comes when all places are taken waits for one. */
export async function ask(path) {
  if (running === AT_ONCE) await new Promise((resolve) => { waiting.push(resolve); });
  else running += 1;
  try {
    return await request(path);
  } finally {
    if (waiting.length) waiting.shift()();  // the place is handed on
    else running -= 1;
  }
}

export const askJSON = async (path) => JSON.parse(await (await ask(path)).text());
