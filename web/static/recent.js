// Keeps recent files. If the browser has a handle for a file, the handle is kept; otherwise a copy of the file, in the
// private file system of this page's origin. Nothing leaves the browser.
//
// Without such storage, `list` returns null, and the page shows no recent files. No function throws.
const FOLDER = "opened";
const STORE = "files";

const folder = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });

const database = () =>
  new Promise((done, fail) => {
    const request = indexedDB.open("vramscope", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });

// Runs one request in a transaction of its own, and returns its result.
async function use(mode, act) {
  const opened = await database();
  try {
    const transaction = opened.transaction(STORE, mode);
    const request = act(transaction.objectStore(STORE));
    await new Promise((done, fail) => {
      transaction.oncomplete = done;
      transaction.onabort = () => fail(transaction.error);
    });
    return request.result;
  } finally {
    opened.close();
  }
}

const get = (id) => use("readonly", (store) => store.get(id));
const put = (entry) => use("readwrite", (store) => store.put(entry));
const newestFirst = async () => (await use("readonly", (store) => store.getAll())).sort((a, b) => b.when - a.when);

// Returns a promise of the result of another, or of `otherwise` if that fails.
const or = (otherwise, promise) => promise.catch(() => otherwise);

async function remove(entry) {
  await use("readwrite", (store) => store.delete(entry.id));
  if (entry.copy) await or(null, (await folder()).removeEntry(entry.copy));
}

async function copy(file, name) {
  const writable = await (await (await folder()).getFileHandle(name, { create: true })).createWritable();
  await file.stream().pipeTo(writable);
}

// Forgets the oldest entries beyond the number `most` or beyond `all` bytes of copies, and copies without an entry.
async function prune(most, all) {
  // Before the entries: a copy that is begun meanwhile, also by another tab, has its entry already.
  const here = await folder();
  const copies = [];
  for await (const name of here.keys()) copies.push(name);
  const entries = await newestFirst();
  let bytes = 0;
  const known = new Set();
  for (const [place, entry] of entries.entries()) {
    const size = entry.copy ? entry.size : 0;
    if (place >= most || (entry.copy && bytes + size > all)) {
      await remove(entry);
      continue;
    }
    bytes += size;
    if (entry.copy) known.add(entry.copy);
  }
  for (const name of copies) {
    if (!known.has(name)) await or(null, here.removeEntry(name));
  }
}

// Returns the kept files, the newest first; null without storage.
export const list = () => or(null, newestFirst().then(async (found) => (await folder()) && found.filter((entry) => entry.ready)));

// Keeps a file, and returns its id; null if it can't be kept. `handle` may be a promise, or undefined. A copy has at
// most `each` bytes; for `all` and `most` see `prune`.
export const keep = (file, handle, each, all, most) =>
  or(
    null,
    (async () => {
      const id = `${file.name}|${file.size}|${file.lastModified}`;
      const known = await get(id);
      const entry = { ...known, id, name: file.name, size: file.size, when: Date.now() };
      entry.handle = (await or(undefined, Promise.resolve(handle))) ?? known?.handle;
      if (entry.handle?.kind !== "file") delete entry.handle;
      if (!entry.handle && !(known?.ready && known.copy)) {
        if (file.size > each) return null;
        Object.assign(entry, { copy: crypto.randomUUID(), ready: false });
        await put(entry);
        try {
          await copy(file, entry.copy);
        } catch (error) {
          await remove(entry);
          throw error;
        }
      }
      await put({ ...entry, ready: true });
      await prune(most, all);
      return id;
    })(),
  );

// Adds facts that are known once a file has been read, as JSON: its peak, whether memory ran out, its identity.
export const note = (id, facts) => or(null, get(id).then((entry) => entry && put({ ...entry, ...JSON.parse(facts) })));

// Returns the file; "ask" if the person must allow it first; null if it no longer exists. With `asks`, asks the person.
export const open = (id, asks) =>
  or(
    null,
    (async () => {
      const entry = await get(id);
      const { handle } = entry;
      if (!handle) {
        const kept = await (await (await folder()).getFileHandle(entry.copy)).getFile();
        await put({ ...entry, when: Date.now() });
        // With its original time, so that it gets the same id when it is kept again.
        return new File([kept], entry.name, { lastModified: Number(entry.id.split("|").at(-1)) });
      }
      const wish = { mode: "read" };
      let may = await handle.queryPermission(wish);
      if (may === "prompt" && asks) may = await handle.requestPermission(wish);
      if (may !== "granted") return "ask";
      const file = await handle.getFile();
      await put({ ...entry, when: Date.now() });
      return file;
    })(),
  );

// Returns the handle of a kept file; undefined if it has none.
export const handleOf = (id) => or(undefined, get(id).then((entry) => entry?.handle));

// Forgets one file, or all of them without an id.
export const forget = (id) =>
  or(
    null,
    newestFirst().then(async (entries) => {
      for (const entry of entries) if (id === undefined || entry.id === id) await remove(entry);
      if (id === undefined) await prune(0, 0);
    }),
  );

// Opens the browser's dialog that returns handles. Returns an array of each file followed by its handle, which is empty
// if the dialog was cancelled. Returns undefined if there is no such dialog.
export const pick = () =>
  globalThis.showOpenFilePicker &&
  or(
    [],
    showOpenFilePicker({ multiple: true }).then(async (handles) => {
      const files = await Promise.all(handles.map((handle) => handle.getFile()));
      return files.flatMap((file, place) => [file, handles[place]]);
    }),
  );

// Returns a promise of the handle for each file that was dropped. Must be called while the drop is handled.
export const handles = (transfer) =>
  [...transfer.items].filter((item) => item.kind === "file").map((item) => or(undefined, Promise.resolve(item.getAsFileSystemHandle?.())));
