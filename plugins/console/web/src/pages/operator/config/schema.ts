/** Walks the JSON schema of a gateway file: the possible values of a place, and their meaning. Pure. */

export interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, SchemaNode>>;
}

/** One step into a value: a member's name, or an element of a list. */
export type Step = string | typeof listStep;
export const listStep = Symbol('element');

const deepest = 32;

/** What a node comes to once references and alternatives are followed; descriptions of the place itself come first. */
export function alternatives(root: SchemaNode, node: SchemaNode, depth = 0): SchemaNode[] {
  if (depth > deepest) return [];
  const inner = [
    ...(node.$ref === undefined ? [] : [root.$defs?.[node.$ref.replace('#/$defs/', '')] ?? {}]),
    ...(node.anyOf ?? []),
    ...(node.oneOf ?? []),
  ];
  if (inner.length === 0) return [node];
  const { description } = node;
  return inner
    .flatMap((one) => alternatives(root, one, depth + 1))
    .map((one) => ({ ...one, ...(description === undefined ? {} : { description }), ...defaultOf(node) }));
}

function defaultOf(node: SchemaNode): { readonly default?: unknown } {
  return 'default' in node ? { default: node.default } : {};
}

/** The possible values at the end of a path; empty where there are none, or none are known. */
export function nodesAt(root: SchemaNode, path: readonly Step[]): SchemaNode[] {
  let nodes = alternatives(root, root);
  for (const step of path) {
    nodes = nodes.flatMap((node) => {
      const next = step === listStep ? node.items : memberOf(node, step);
      return next === undefined ? [] : alternatives(root, next);
    });
  }
  return nodes;
}

/** The schema of one member, or undefined where it may not be. */
export function memberOf(node: SchemaNode, name: string): SchemaNode | undefined {
  const named =
    node.properties !== undefined && Object.hasOwn(node.properties, name) ? node.properties[name] : undefined;
  if (named !== undefined) return named;
  return typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined;
}

/** The values that a node lists; booleans have two. */
export function valuesOf(nodes: readonly SchemaNode[]): string[] {
  const values = nodes.flatMap((node) => {
    if (node.enum !== undefined) return node.enum.map(String);
    if (node.const !== undefined) return [String(node.const)];
    return node.type === 'boolean' ? ['true', 'false'] : [];
  });
  return [...new Set(values)];
}

/** `string`, `list`, `one of debug, info` …: what a member takes, in few words. */
export function kindOf(nodes: readonly SchemaNode[]): string {
  const words = nodes.flatMap((node) => {
    const { type } = node;
    if (node.enum !== undefined) return node.enum.slice(0, 6).map(String);
    return typeof type === 'string' ? [type] : [...(type ?? [])];
  });
  return [...new Set(words)].join(' | ');
}
