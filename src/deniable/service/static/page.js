// What both pages need.

/** An element. Texts stay texts: nothing here, or on any page, is read as markup. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false) node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

/** A text inside of a sentence: its direction does not turn the words around it. */
export const isolated = (text) => `\u2068${String(text).replace(/[\u2066-\u2069]/g, '')}\u2069`;

export const byId = (id) => document.getElementById(id);

/** Show a text, or hide the element if there is none. */
export function show(node, text) {
  node.textContent = text;
  node.hidden = !text;
}

/** What this tab keeps; nothing where the browser refuses all storage. */
function kept(place, given) {
  try {
    if (given) sessionStorage.setItem(place, given);
    return sessionStorage.getItem(place);
  } catch {
    return '';
  }
}

/** A secret from the fragment of the address, which no server sees; the address forgets it at once. */
export function secret(name) {
  const given = new URLSearchParams(location.hash.slice(1)).get(name);
  if (given) history.replaceState(null, '', location.pathname + location.search);
  return kept(`deniable:${name}`, given) || given || '';
}

// Another link to the same page, pasted into the same tab.
addEventListener('hashchange', () => location.reload());
