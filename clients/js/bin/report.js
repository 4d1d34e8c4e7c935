#!/usr/bin/env node
// Reads one value per line (an index, or a text if the spec is about texts) and prints one report per
// line, as the hexadecimal digits of its row, with fresh coins: what a black-box audit looks at.

import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { encode, mechanism, secureBytes } from '../deniable.js';

globalThis.crypto ??= webcrypto; // Node 18 has it, but not as a global
if (process.argv.length !== 3) {
  console.error('usage: report.js SPEC.json < values');
  process.exit(2);
}
const spec = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const m = await mechanism(spec);
const isText = typeof m.p.domain.zero === 'bigint';
const lines = readFileSync(0, 'utf8').split('\n').slice(0, -1);
const reports = [];
for (const line of lines) {
  const value = isText ? await encode(spec.domain, line) : Number(line);
  const row = m.report(value, secureBytes(8 * m.words));
  reports.push(JSON.stringify(Buffer.from(row).toString('hex')), '\n');
}
process.stdout.write(reports.join(''));
