/** Names of tools that an upstream takes, and the way back from them to the client's own. */
import type { CustomTool, FunctionTool } from '../canon.ts';
import type { DeclaredTool, ToolNames } from '../reply-events.ts';
import { shortHash } from './hash.ts';

/** What a protocol takes for a name. `_` must be legal everywhere in it. */
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
 * Gives every tool of one request a legal name of its own. A legal name stays as it is; others are mended and end in a
 * hash of what they were, so that the same tool has the same name in every request and prompt caches hold. A tool of a
 * namespace is called `namespace__name`. Declare the tools in their order before asking for names of the history.
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

  /** Given names of free-text tools that were declared as functions of one string. */
  get wrapped(): ReadonlySet<string> {
    return this.#wrapped;
  }

  /** Whether `declare` has seen this tool: a second declaration of one tool is left out. */
  isDeclared(tool: FunctionTool | CustomTool): boolean {
    return this.#declared.has(keyOf(tool.name, tool.namespace));
  }

  readonly #declared = new Set<string>();

  /** The name for a declaration. `wrapped`: a free-text tool goes as a function of one string. */
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

  /**
   * The name for a call, a result or a choice. Without a namespace it may mean a declared tool of one: the one that has
   * this name.
   */
  nameFor(name: string, namespace?: string): string {
    const key = keyOf(name, namespace);
    const given = this.#byKey.get(key) ?? (namespace === undefined ? this.#byBareName.get(name) : undefined);
    return given ?? this.#give(key, name, namespace);
  }

  #give(key: string, name: string, namespace: string | undefined): string {
    const flat = namespace === undefined || namespace === '' ? name : `${namespace}__${name}`;
    let given = this.#isLegal(flat) ? flat : this.#mended(flat, key);
    // Another tool has this very name: `a__b` beside `b` of namespace `a`.
    for (let round = 0; this.#names.has(given); round++) given = this.#mended(flat, `${key}\0${round}`);
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
    for (const character of name) legal += matches(allowed, character) ? character : '_';
    return legal === '' || matches(first, legal[0]!) ? legal : `_${legal}`;
  }

  #mended(name: string, seed: string): string {
    const room = this.#limits.maxLength - hashLength - 1;
    return `${this.#legalized(name).slice(0, room) || 'tool'}_${shortHash(seed, hashLength)}`;
  }
}

function keyOf(name: string, namespace: string | undefined): string {
  return `${namespace ?? ''}\0${name}`;
}

/** Like `test`, whatever flags the expression has. */
function matches(expression: RegExp, character: string): boolean {
  return character.search(expression) !== -1;
}
