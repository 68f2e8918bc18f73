/** What a gateway file may say at the cursor: members and values from its schema, with their sentences. Pure. */
import { placeAt } from './place.ts';
import { alternatives, kindOf, listStep, memberOf, nodesAt, type SchemaNode, valuesOf } from './schema.ts';

interface Suggestion {
  readonly label: string;
  /** The inserted text, where that is more than the label. */
  readonly apply: string;
  /** Its type, in few words. */
  readonly detail: string;
  /** Its meaning, and its default. */
  readonly info: string;
  readonly kind: 'member' | 'value';
}
export interface Suggestions {
  readonly from: number;
  readonly options: readonly Suggestion[];
}

/** Suggestions at an offset; undefined where the schema knows nothing of the place. */
export function suggestionsAt(root: SchemaNode, text: string, offset: number): Suggestions | undefined {
  const place = placeAt(text, offset);
  if (place === undefined) return undefined;
  const nodes = nodesAt(root, place.path);
  const members = place.at === 'key' || place.path.at(-1) === listStep ? memberOptions(root, nodes, place.taken) : [];
  const values = place.at === 'value' ? valueOptions(nodes) : [];
  const options = [...values, ...members];
  return options.length === 0 ? undefined : { from: place.from, options };
}

/** The description of the member at an offset, shown on hover; undefined: it has none. */
export function meaningAt(root: SchemaNode, text: string, offset: number): { name: string; text: string } | undefined {
  const lineEnd = text.indexOf('\n', offset);
  const rest = text.slice(offset, lineEnd < 0 ? undefined : lineEnd);
  const after = /^[\w.-]*\s*:/.exec(rest);
  if (after === null) return undefined;
  const place = placeAt(text, offset);
  if (place === undefined || place.at !== 'key') return undefined;
  const name = text.slice(place.from, offset + after[0].length - 1).trim();
  const found = nodesAt(root, [...place.path, name]).find(({ description }) => description !== undefined);
  return found === undefined ? undefined : { name, text: sentenceOf(found) };
}

function memberOptions(root: SchemaNode, nodes: readonly SchemaNode[], taken: ReadonlySet<string>): Suggestion[] {
  const names = [...new Set(nodes.flatMap(({ properties }) => Object.keys(properties ?? {})))];
  return names
    .filter((name) => !taken.has(name))
    .map((name) => {
      const inner = nodes.flatMap((node) => {
        const member = memberOf(node, name);
        return member === undefined ? [] : alternatives(root, member);
      });
      const [first = {}] = inner;
      return {
        label: name,
        apply: `${name}: `,
        detail: kindOf(inner),
        info: sentenceOf(first),
        kind: 'member' as const,
      };
    });
}

function valueOptions(nodes: readonly SchemaNode[]): Suggestion[] {
  return valuesOf(nodes).map((value) => ({ label: value, apply: value, detail: '', info: '', kind: 'value' as const }));
}

function sentenceOf(node: SchemaNode): string {
  const shown = node.default === undefined || node.default === '' ? '' : JSON.stringify(node.default);
  const isShort = shown !== '' && shown !== '{}' && shown.length < 120;
  return [node.description ?? '', isShort ? `Default: ${shown}` : ''].filter((part) => part !== '').join(' ');
}
