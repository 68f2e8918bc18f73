/** A text that never shows itself: in strings, JSON, logs and inspections it reads `***`; and where such texts come from. Pure. */
import { defineExtensionPoint, type Extension } from './extensions.ts';

const mask = '***';

class HiddenText implements Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return mask;
  }

  toJSON(): string {
    return mask;
  }

  /** Template strings, concatenation and Number() included. */
  [Symbol.toPrimitive](): string {
    return mask;
  }

  /** Called by util.inspect and console.log: https://nodejs.org/api/util.html#custom-inspection-functions-on-objects */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return mask;
  }
}

/** Hides a text; only `reveal()` gives it back. */
export function secret(text: string): Secret {
  return new HiddenText(text);
}

/** Keys with known prefixes, and long tokens after a short prefix. */
const keyPattern = /\b(?:sk|pk|rk|gsk|sess)-[A-Za-z0-9_-]{8,}|(?<=\b[a-z]{2,4}-)[A-Za-z0-9]{24,}/g;
const cloudKeyPattern = /\bAIza[A-Za-z0-9_-]{20,}/g;
const bearerPattern = /(?<=Bearer\s)[^\s"',]{8,}/g;
/** Organisations at vendors, which their messages name. */
const organizationPattern = /\borg-(?!(?:level|wide|specific|scoped|owned|managed|based|id|ids|name)\b)\w[\w-]*/g;
/** Passwords inside URLs. */
const passwordPattern = /(?<=:\/\/[^\s:@/]*:)[^\s@/]+(?=@)/g;
/** Length of the shortest text that can contain a credential. */
const shortest = 'org-x'.length;
/** Minimum length of a key with an unknown prefix. */
const shortestUnknown = 'ab-'.length + 24;

/** Whether `keyPattern` could match: names of models have a `-` too, and are looked at in each request. */
function mayHoldKey(text: string): boolean {
  return text.includes('k-') || text.includes('sess-') || (text.length >= shortestUnknown && text.includes('-'));
}

/** Replaces text that looks like a credential by `***`. Each pattern runs only if its first characters occur. */
export function maskSecrets(text: string): string {
  if (text.length < shortest) return text;
  let masked = text;
  if (mayHoldKey(text)) masked = masked.replace(keyPattern, mask);
  if (text.includes('org-')) masked = masked.replace(organizationPattern, mask);
  if (text.includes('AIza')) masked = masked.replace(cloudKeyPattern, mask);
  if (text.includes('Bearer')) masked = masked.replace(bearerPattern, mask);
  if (text.includes('://')) masked = masked.replace(passwordPattern, mask);
  return masked;
}

/** A value that never shows itself: string, JSON and inspect give `***`. */
export interface Secret {
  reveal(): string;
}

/** A place that secrets come from; `${name:reference}` in a gateway file is filled in with what it reads there. */
export interface SecretSource extends Extension {
  /** Small letters, digits and `-`; not `file`. */
  readonly name: string;
  /**
   * The secret, or undefined: there is none of this name. Called at the start, for `check` and commands too, and at each reload. Rejects with an Error
   * that says why, without any secret: at the start it is a problem of the file, at a reload the running configuration stays.
   */
  read(reference: string, signal: AbortSignal): Promise<string | undefined>;
  /** Calls `changed` whenever a secret may have changed: all are read again. Returns what ends it. */
  watch?(changed: () => void): () => void;
}

/** A setting with a list of secrets, of which the first is used for new values and all for existing ones. */
export interface RotatedSecret {
  /** `auth.secret` */
  readonly setting: string;
  /** The values that are made with it. */
  readonly uses: string;
  /** How many there are. */
  readonly secrets: number;
  /**
   * Writes with the first one what is stored under another. `left`: what still needs another one; `givesUp`: it is discarded. `advice`: when the
   * others can be removed, as the end of a sentence.
   */
  rotate(givesUp: boolean): Promise<{ readonly done: number; readonly left: number; readonly advice: string }>;
}

/** Owned by the gateway. A plugin that adds to it is set up before the others and requires no service. */
export const secretSources = defineExtensionPoint<SecretSource>('secret sources');
