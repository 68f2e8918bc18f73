/** Legal tool names for an upstream, and their mapping to the client's names. */

import type { DeclaredTool, ToolNames } from '../canonical/events.ts';
import type { CustomTool, FunctionTool } from '../canonical/prompt.ts';
import { shortHash } from './hash.ts';

/** A protocol's rules for a name. `_` must be legal at every position. */
export interface NameLimits {
  /** Matches one legal character. */
  readonly allowed: RegExp;
  /** Matches a legal first character; absent: as `allowed`. */
  readonly first?: RegExp;
  /** At least 16. */
  readonly maxLength: number;
}

const hashLength = 8;

/**
 * Gives every tool of one request a unique legal name. A legal name stays; others are converted and end in a hash of
 * the original, so that the same tool has the same name in every request and prompt caches stay valid. A tool of a
 * namespace is called `namespace__name`, and one of the empty namespace by its bare name, though it is another tool than one
 * without a namespace. Declare the tools in their order before requesting names of the history.
 */
export class ToolNamer {
  readonly #limits: NameLimits;
  readonly #names = new Map<string, DeclaredTool>();
  readonly #wrapped = new Set<string>();
  /** Legal name by `keyOf`. */
  readonly #byKey = new Map<string, string>();
  /** Legal name of declared tools by bare name; undefined where two namespaces have it. */
  readonly #byBareName = new Map<string, string | undefined>();

  constructor(limits: NameLimits) {
    this.#limits = limits;
  }

  /** The client's tools by the names given so far. */
  get names(): ToolNames {
    return this.#names;
  }

  /** Names of free-text tools that were declared as functions of one string. */
  get wrapped(): ReadonlySet<string> {
    return this.#wrapped;
  }

  /** Whether `declare` has seen this tool: a repeated declaration is left out. */
  isDeclared(tool: FunctionTool | CustomTool): boolean {
    return this.#declared.has(keyOf(tool.name, tool.namespace));
  }

  readonly #declared = new Set<string>();

  /** The name for a declaration. `wrapped`: a free-text tool is declared as a function of one string. */
  declare(tool: FunctionTool | CustomTool, options: { readonly wrapped?: boolean } = {}): string {
    const { name, namespace } = tool;
    const key = keyOf(name, namespace);
    const given = this.#byKey.get(key) ?? this.#give(key, name, namespace);
    this.#declared.add(key);
    const custom = tool.kind === 'custom';
    this.#names.set(given, { name, ...(namespace === undefined ? {} : { namespace }), ...(custom ? { custom } : {}) });
    if (options.wrapped === true) this.#wrapped.add(given);
    const isShared = this.#byBareName.has(name) && this.#byBareName.get(name) !== given;
    this.#byBareName.set(name, isShared ? undefined : given);
    return given;
  }

  /** The name for a call, a result or a choice. A name without a namespace may refer to a tool of a namespace. */
  nameFor(name: string, namespace?: string): string {
    const key = keyOf(name, namespace);
    const given = this.#byKey.get(key) ?? (namespace === undefined ? this.#byBareName.get(name) : undefined);
    return given ?? this.#give(key, name, namespace);
  }

  #give(key: string, name: string, namespace: string | undefined): string {
    const flat = namespace === undefined || namespace === '' ? name : `${namespace}__${name}`;
    let given = this.#isLegal(flat) ? flat : this.#converted(flat, key);
    // Another tool has the same name: `a__b` beside `b` of namespace `a`.
    for (let round = 0; this.#names.has(given); round++) given = this.#converted(flat, `${key}\0${round}`);
    this.#byKey.set(key, given);
    this.#names.set(given, { name, ...(namespace === undefined ? {} : { namespace }) });
    return given;
  }

  #isLegal(name: string): boolean {
    return name !== '' && name.length <= this.#limits.maxLength && this.#legalized(name) === name;
  }

  #legalized(name: string): string {
    const { allowed, first = allowed } = this.#limits;
    let legal = '';
    for (const character of name) legal += isIn(character, allowed) ? character : '_';
    return legal === '' || isIn(legal[0]!, first) ? legal : `_${legal}`;
  }

  #converted(name: string, seed: string): string {
    const room = this.#limits.maxLength - hashLength - 1;
    // Each character becomes one, and has at most two units: the rest of a long name need not be looked at.
    return `${this.#legalized(name.slice(0, 2 * room)).slice(0, room) || 'tool'}_${shortHash(seed, hashLength)}`;
  }
}

function keyOf(name: string, namespace: string | undefined): string {
  // Without the separator, which the other keys have and quoted text has not.
  if (namespace === '') return JSON.stringify(name);
  return `${namespace ?? ''}\0${name}`;
}

/** What expressions said about characters of ASCII, by the character's code. */
const answers = new WeakMap<RegExp, (boolean | undefined)[]>();

/** Like `test`, regardless of the expression's flags. */
function isIn(character: string, expression: RegExp): boolean {
  const code = character.charCodeAt(0);
  if (code > 0x7f) return character.search(expression) !== -1;
  let known = answers.get(expression);
  if (known === undefined) {
    known = new Array<boolean | undefined>(0x80).fill(undefined);
    answers.set(expression, known);
  }
  const answer = known[code] ?? character.search(expression) !== -1;
  known[code] = answer;
  return answer;
}
