// The client with every family. A collector's /client.js imports only those of its manifest.
import './client/again.js';
import './client/histogram.js';
import './client/items.js';
import './client/trees.js';

export { Client, DeniableError, browserBook, secureBytes, tidy } from './client/core.js';
export { encode, mechanism, report } from './client/spec.js';
export { loadTexts, readTexts } from './client/texts.js';
