/** Everything that this module refuses. */
export class DeniableError extends Error {
  constructor(type: string, message: string);
  /**
   * From the client: "bad-manifest", "unsupported" (a version, a kind or a mechanism that is not known
   * here), "broken-promise" (its integers reveal more than its epsilon), "too-much" (epsilon is above `maxEpsilon`), "other-collection", "changed" (this device answered
   * another collection at this address), "answered" (this round was answered), "bad-answer",
   * "bad-round", "prepared" (prepare first, or again), "memo" (the book failed), "coins" (no random
   * numbers), "no-answer" (the network failed, or 30 seconds were not enough) or "unexpected". From a
   * server: the word after `urn:deniable:` of its problem, such as "id-used"; never one of those
   * above but "other-collection".
   */
  type: string;
  /** From `client.answer`: `await error.sheet.send()` sends the same again, which is counted once. */
  sheet?: Sheet;
  /** With "changed": the digest to agree to, as `another`. */
  digest?: string;
  /** With "changed": the epsilons of what this device answered here before, added up. */
  spent?: number;
}

/** null: a skip of an optional question. */
export type Answer = string | number | boolean | null;
export type Answers = Record<string, Answer>;
/** The values of the public fields, which are sent as they are. */
export type Fields = Record<string, string>;

/** A kind of answer with its keys (docs/formats.md). */
export interface Domain {
  kind: string;
  optional: boolean;
  [key: string]: unknown;
}

/** A mechanism as a manifest has it (docs/formats.md). */
export interface Leaf {
  name: string;
  epsilon?: number;
  epsilon_inf?: number;
  epsilon_1?: number;
  design: Record<string, number>;
  thresholds?: Record<string, string>;
  branches?: { weight: number; of: string[]; mechanism: Leaf }[];
}

/** A spec (docs/formats.md). */
export interface Spec {
  deniable: 2;
  domain: Domain;
  mechanism: Leaf;
}

export interface Question extends Domain {
  name: string;
}

/** A manifest (docs/wire-format.md). */
export interface Manifest {
  deniable: 2;
  epsilon: number;
  unbounded: [];
  rounds: number;
  changes: number;
  fields: { name: string; values: string[] }[];
  after: null | { root: string; parent: string; step: number };
  questions: Question[];
  reports: { name: string; of: string[]; mechanism: Leaf }[];
}

/** What the book says of a collection. Secrets, words and ids are in hexadecimal. */
export interface Page {
  epsilon: number;
  /** The digest of the first step of its protocol; its own if it is the first. */
  root: string;
  /** The addresses where it was begun. */
  at: Record<string, true>;
  /** By the place of a report in the manifest; keys are integers below 2^64, ascending. */
  memos: Record<string, { secret: string; keys: string[] }>;
  /**
   * By round: what was drawn and not used yet, or what was sent. `places` has for each report the
   * word that draws what it is about, or '' if nothing is drawn; it is the first of its words.
   */
  rounds: Record<string, { places: string[]; words?: string; id?: string } | { body: string }>;
}

/** All of a book, by digest. Plain data: JSON and structured clones hold it. */
export type Pages = Record<string, Page>;

/** Where a device keeps what it drew and sent. */
export interface Book {
  /**
   * Replaces all pages by `change(pages)`; in a book that is new, by `change({})`. `change` is called
   * once, and nobody else writes meanwhile: no other tab, thread or process. It may change the pages
   * that it gets, and return them. If it throws, nothing is changed and the promise is rejected with
   * what it threw. Resolves when the new pages are on a disk.
   */
  update(change: (pages: Pages) => Pages): Promise<unknown>;
}

export interface Options {
  /** The digest that the manifest must have, in lower-case hexadecimal. */
  digest?: string;
  /** Refuses a manifest with a larger epsilon ("too-much"). Default: 8. */
  maxEpsilon?: number;
  /** Default: IndexedDB; where there is none, a book must be given, or null to keep nothing. */
  book?: Book | null;
  /** The digest of this collection, to agree that it is another than the one answered here before. */
  another?: string;
  /** Default: the global one. */
  fetch?: typeof fetch;
  /** Sent as `Authorization: Bearer <key>` with submissions, and only with these. */
  key?: string;
  /** Where to send. Default: `submissions` beside the manifest, hence .../v2/submissions. */
  to?: string | URL;
  /** How often to send before giving up. Default: 6. */
  tries?: number;
  /** Milliseconds before the second try; they double each time. Default: 500. */
  pause?: number;
}

/** What would be sent. */
export interface Submission {
  body: string;
  id: string;
  reports: Record<string, string>;
}

export interface Sheet {
  /** Those to ask: all, or those that were drawn; none if this round was answered. */
  readonly questions: Question[];
  /** The reports to make, each with the questions that it is about: of drawn ones, those drawn. */
  readonly reports: { name: string; of: string[] }[];
  /** What was sent in this round, or may have been: nothing else is sent in it any more. */
  readonly body: string | undefined;
  /** Randomises the answers. Coins are drawn once: the same answers again give the same bytes. */
  prepare(answers: Answers, fields?: Fields): Promise<Submission>;
  /**
   * Sends `body`, or what was prepared last, which is `body` from then on, whatever the server says.
   * `counted` is false if the server had counted it before.
   */
  send(): Promise<{ counted: boolean }>;
}

/** A report of the manifest, with the mechanism that makes it. */
export interface Report {
  name: string;
  of: string[];
  m: Mechanism;
}

export interface Client {
  readonly manifest: Manifest;
  readonly digest: string;
  readonly reports: Report[];
  begin(round?: number): Promise<Sheet>;
  /** `begin`, `prepare` and `send`. After an error with a `sheet` send that again. */
  answer(answers: Answers, round?: number, fields?: Fields): Promise<{ counted: boolean }>;
}

export const Client: {
  /** From an address, or from the bytes of a manifest. */
  load(
    source: string | URL | Uint8Array | ArrayBuffer | { bytes: Uint8Array | ArrayBuffer },
    options?: Options,
  ): Promise<Client>;
};

/** An encoded answer: an index of 0..k-1, the code of a text, a number on its grid, or one for each of several questions. */
export type Value = number | bigint | Value[];

export interface Mechanism {
  /** The 64-bit words that a report takes. */
  readonly words: number;
  /** What one report reveals at most (epsilon), recomputed from the integers. */
  readonly cost: number;
  /** The bytes of the row of a report. Throws unless it gets exactly the bytes that it needs. */
  report(value: Value, bytes: Uint8Array): Uint8Array;
}

/** A mechanism outside of any collection. Refuses one that breaks its own promise. */
export function mechanism(spec: Spec): Promise<Mechanism>;

/** The row of one report: a pure function of the encoded answer and the coins. */
export function report(spec: Spec, value: Value, bytes: Uint8Array): Promise<Uint8Array>;

/** The integers that stand for an answer. */
export function encode(domain: Domain, answer: unknown): Promise<Value>;

/** What is hashed of a text: NFC, case folded unless `fold` is 'none', blanks joined and none at the ends. */
export function tidy(text: string, fold?: 'case' | 'none'): string;

/** What people read, in one language. To be shown as text, never as HTML. */
export interface Texts {
  language: string;
  title: string;
  about: string;
  /** Of a question: how it is asked, and its answers in words; what is missing is shown as its id. */
  questions: {
    ask(name: string): string;
    answers(name: string, ids: string[]): string[];
    /** Of a number, such as "hours"; or ''. */
    unit(name: string): string;
  };
  fields: { ask(name: string): string; answers(name: string, ids: string[]): string[] };
  /** What analysts look for first among free texts. */
  candidates(name: string): string[];
}

/** From the bytes of the document of texts. `preferred` are languages; default: those of the browser. */
export function readTexts(bytes: Uint8Array, client: Client, preferred?: readonly string[]): Texts;

/** From its address, beside the manifest's: .../v2/texts. */
export function loadTexts(
  url: string | URL,
  client: Client,
  options?: { fetch?: typeof fetch; preferred?: readonly string[] },
): Promise<Texts>;

/** The book of a browser: IndexedDB. */
export const browserBook: Book;

/** Bytes of `crypto.getRandomValues`, any number of them; refuses a source that repeats itself or has a dead bit. */
export function secureBytes(count: number): Uint8Array;
