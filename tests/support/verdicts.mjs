// Reads a manifest a line and prints for each what a client says: "ok", or the type of the refusal.

import { webcrypto } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Client } from '../../clients/js/deniable.js';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global
const book = { update: () => {} };
for await (const line of createInterface({ input: process.stdin })) {
  const loading = Client.load(new TextEncoder().encode(line), { book, maxEpsilon: 32 });
  console.log(await loading.then(() => 'ok', ({ type, message }) => type ?? message));
}
