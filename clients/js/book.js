// The book of a browser: what its pages drew and sent, and to whom. README.md says what is in it.

const STORE = 'book';

function open() {
  const request = indexedDB.open('deniable', 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** One transaction: all tabs and processes of a browser take turns. Resolves when it is on the disk. */
function turn(database, address, change) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, 'readwrite', { durability: 'strict' });
    const store = transaction.objectStore(STORE);
    let refusal;
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(refusal ?? transaction.error);
    store.get(address).onsuccess = ({ target }) => {
      try {
        store.put(change(target.result ?? {}), address);
      } catch (error) {
        refusal = error;
        transaction.abort();
      }
    };
  });
}

export const browserBook = {
  async update(address, change) {
    const database = await open();
    return turn(database, address, change).finally(() => database.close());
  },
};
