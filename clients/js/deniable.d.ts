/** Everything that this module refuses. */
export class DeniableError extends Error {
  constructor(type: string, message: string);
  /**
   * From the client: "bad-manifest", "broken-promise" (its integers reveal more than its epsilon),
   * "too-much" (epsilon is above `maxEpsilon`), "other-collection", "changed" (this device answered
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

export type Answer = string | number | boolean;
export type Answers = Record<string, Answer>;

/** A spec (docs/formats.md). */
export interface Spec {
  deniable: 1;
  mechanism: string;
  domain: { labels?: Answer[]; other?: Answer; size?: number; text?: true };
  epsilon?: number;
  epsilon_inf?: number;
  epsilon_1?: number;
  design: Record<string, number>;
  thresholds: Record<string, string>;
}

export interface Question {
  name: string;
  ask: string;
  kind: 'choice' | 'yes/no' | 'number' | 'text';
  edges?: number[];
  candidates?: string[];
  mechanism: Spec;
}

/** A manifest (docs/wire-format.md). */
export interface Manifest {
  deniable: 1;
  title: string;
  about: string;
  epsilon: number;
  divide: 'split' | 'sampled';
  rounds: number;
  changes: number;
  questions: Question[];
}

/** What the book says of a collection. Secrets, words and ids are in hexadecimal. */
export interface Page {
  epsilon: number;
  /** By the place of a question in the manifest; keys are integers below 2^64, ascending. */
  memos: Record<string, { secret: string; keys: string[] }>;
  /** By round: what was drawn and not used yet, or what was sent. */
  rounds: Record<string, { words: string; id?: string } | { body: string }>;
}

/** By digest. Plain data: JSON and structured clones hold it. */
export type Entry = Record<string, Page>;

/** Where a device keeps what it drew and sent. Default: IndexedDB. */
export interface Book {
  /**
   * Replaces the entry of an address by `change(entry)`; of an address that is not known, by
   * `change({})`. `change` is called once, and nobody else writes meanwhile: no other tab, thread or
   * process. It may change the entry that it gets, and return it. If it throws, nothing is changed
   * and the promise is rejected with what it threw. Resolves when the new entry is on a disk.
   */
  update(address: string, change: (entry: Entry) => Entry): Promise<unknown>;
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
  /** Where to send. Default: `submissions` beside the manifest, hence .../v1/submissions. */
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
  /** Those to ask: all, or the one that was drawn; none if this round was answered. */
  readonly questions: Question[];
  /** What was sent in this round, or may have been: nothing else is sent in it any more. */
  readonly body: string | undefined;
  /** Randomises the answers. Coins are drawn once: the same answers again give the same bytes. */
  prepare(answers: Answers): Promise<Submission>;
  /**
   * Sends `body`, or what was prepared last, which is `body` from then on, whatever the server says.
   * `counted` is false if the server had counted it before.
   */
  send(): Promise<{ counted: boolean }>;
}

export interface Client {
  readonly manifest: Manifest;
  readonly digest: string;
  begin(round?: number): Promise<Sheet>;
  /** `begin`, `prepare` and `send`. After an error with a `sheet` send that again. */
  answer(answers: Answers, round?: number): Promise<{ counted: boolean }>;
}

export const Client: {
  /** From an address, or from the bytes of a manifest. */
  load(
    source: string | URL | Uint8Array | ArrayBuffer | { bytes: Uint8Array | ArrayBuffer },
    options?: Options,
  ): Promise<Client>;
};

/** An index of 0..k-1, or the code of a text. */
export type Value = number | bigint;

/**
 * A mechanism, in four steps. `begin` is done before there is an answer, `memoise` for the
 * key of a value, `instant` for every report. A device that remembers repeats only the last. Steps
 * with nothing to do need no bytes. Each throws unless it gets exactly the bytes that it needs.
 */
export interface Mechanism {
  /** The 64-bit words that a report eats, and those of begin, memoise and instant. */
  readonly coinWords: number;
  readonly words: [number, number, number];
  /** Whether devices remember it in several rounds. */
  readonly twoSteps: boolean;
  /** Whether every answer has a permanent draw of its own. */
  readonly keyIsValue: boolean;
  /** All steps at once: the bytes of the row of a report. */
  report(value: Value, bytes: Uint8Array): Uint8Array;
  begin(bytes: Uint8Array): unknown;
  key(begun: unknown, value: Value): bigint;
  memoise(begun: unknown, key: Value, bytes: Uint8Array): unknown;
  instant(begun: unknown, kept: unknown, bytes: Uint8Array): Uint8Array;
}

export function mechanism(spec: Spec): Promise<Mechanism>;

/** The row of one report: a pure function of the value and the coins. */
export function report(spec: Spec, value: Value, bytes: Uint8Array): Promise<Uint8Array>;

/** What is hashed of a text: NFC, case folded unless `fold` is 'none', blanks joined and none at the ends. */
export function tidy(text: string, fold?: 'case' | 'none'): string;

/** The code of a text, tidied first: what stands for it as a value. */
export function textCode(text: string): Promise<bigint>;

/** Bytes of `crypto.getRandomValues`, any number of them; refuses a source that repeats itself or has a dead bit. */
export function secureBytes(count: number): Uint8Array;
