// What people read about a collection, in one language; to be shown as text, never as HTML.
import { fetched } from './core.js';

const isText = (x) => typeof x === 'string' && x.trim() !== '';
const isTexts = (x, length) => Array.isArray(x) && x.length === length && x.every(isText);

/** The first language that a person reads, or that differs from it only in its region. */
function chosen(tags, preferred) {
  const same = (wish, part) => tags.find((tag) => part(tag.toLowerCase()) === part(wish.toLowerCase()));
  const primary = (tag) => tag.split('-')[0];
  for (const wish of preferred) {
    const tag = same(wish, (whole) => whole) ?? same(wish, primary);
    if (tag) return tag;
  }
  return tags[0];
}

/** The document of texts of this collection, or an empty one. */
function parsed(bytes, { digest }) {
  try {
    const found = JSON.parse(new TextDecoder().decode(bytes));
    return found.deniable === 2 && found.collection === digest && bytes.byteLength <= 2 ** 20 ? found : {};
  } catch {
    return {};
  }
}

/** Keys that are not known are ignored; what is missing is shown as its id. */
export function readTexts(bytes, client, preferred = globalThis.navigator?.languages ?? []) {
  const { languages, candidates } = parsed(bytes, client);
  const tag = chosen(Object.keys(Object(languages)), preferred);
  const language = Object(Object(languages)[tag]);
  const wording = (list, name) =>
    Object((Array.isArray(language[list]) ? language[list] : []).find((one) => one?.name === name));
  const words = (list) => ({
    ask: (name) => (isText(wording(list, name).ask) ? wording(list, name).ask : name),
    unit: (name) => (isText(wording(list, name).unit) ? wording(list, name).unit : ''),
    answers: (name, ids) => (isTexts(wording(list, name).answers, ids.length) ? wording(list, name).answers : ids),
  });
  return {
    language: tag ?? 'en',
    title: isText(language.title) ? language.title : `Collection ${client.digest.slice(0, 12)}`,
    about: isText(language.about) ? language.about : '',
    questions: words('questions'),
    fields: words('fields'),
    candidates(name) {
      const listed = Object.hasOwn(Object(candidates), name) ? candidates[name] : [];
      return Array.isArray(listed) ? listed.filter(isText) : [];
    },
  };
}

/** From the address of the texts, beside that of the manifest; a collector may have none. */
export async function loadTexts(url, client, { fetch, preferred } = {}) {
  const bytes = await fetched(url, fetch).catch((error) => {
    if (error.type === 'no-answer') throw error;
    return new Uint8Array();
  });
  return readTexts(bytes, client, preferred);
}
