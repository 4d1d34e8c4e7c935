// Requests of an analyst, one at a time.
import { secret } from '/page.js';

const PLACE = 'deniable:token';
const LONGEST = 120_000;

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

let last = Promise.resolve();

/** The answer as bytes, when all requests before it have theirs. */
export function ask(path) {
  const mine = last.then(() => request(path));
  last = mine.catch(() => {});
  return mine;
}

export const askJSON = async (path) => JSON.parse(await (await ask(path)).text());
