#!/usr/bin/env node
// Reads a value index a line (a text, if the spec is for texts) and prints a report a line, as the
// hexadecimal digits of its row, with fresh coins: what a black-box audit looks at.

import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mechanism, secureBytes, textCode } from '../deniable.js';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global
if (process.argv.length !== 3) {
  console.error('usage: report.js SPEC.json < values');
  process.exit(2);
}
const spec = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const m = await mechanism(spec);
const lines = readFileSync(0, 'utf8').split('\n').slice(0, -1);
const reports = [];
for (const line of lines) {
  const value = spec.domain.text ? await textCode(line) : Number(line);
  const row = m.report(value, secureBytes(8 * m.coinWords));
  reports.push(JSON.stringify(Buffer.from(row).toString('hex')), '\n');
}
process.stdout.write(reports.join(''));
