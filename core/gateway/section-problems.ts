/** Problems of a parsed section: what the schema found, in sentences with file and line. */

import { z } from '../contract/schema.ts';
import { table } from '../contract/table.ts';
import { didYouMean, nearName } from '../tools/near-names.ts';
import type { LoadedYaml, Problem } from './yaml.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The parsed section, or its problems. `above`: where the section stands. */
export function parseSection<T>(
  schema: z.ZodType<T>,
  value: unknown,
  above: readonly string[],
  yaml: LoadedYaml,
): { readonly data: T } | { readonly problems: Problem[] } {
  const parsed = schema.safeParse(value, { error: sentenceOf });
  return parsed.success ? { data: parsed.data } : { problems: problemsOf(parsed.error, schema, above, yaml) };
}

function problemsOf(error: z.ZodError, schema: z.ZodType, above: readonly string[], yaml: LoadedYaml): Problem[] {
  const issues = error.issues.flatMap(inBestForm);
  const problems: Problem[] = [];
  const add = (path: Path, message: string, at: Path = path) => {
    const full = [...above, ...at];
    const where = yaml.where(full);
    // The value's own fault is why it does not fit.
    const remark = yaml.remarks.find((one) => one.where === where);
    const reason = remark === undefined ? '' : `; ${remark.text}`;
    problems.push({ where, message: yaml.hide(`${written(full)}: ${message}${reason}`) });
  };
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') {
      const known = settingsAt(schema, issue.path);
      for (const key of issue.keys)
        add([...issue.path, key], `there is no such setting${didYouMean(key, known) || listing(known)}`);
    } else if (!isConsequence(issue, issues)) add(issue.path, ownWords(issue));
  }
  return problems;
}

/** Whether an issue follows from a misspelt setting: the right one is missing, or the mapping that has it is incomplete. */
function isConsequence(issue: Issue, issues: readonly Issue[]): boolean {
  return issues.some((other) => {
    if (other.code !== 'unrecognized_keys') return false;
    if (issue.code === 'custom') return isSame(other.path, issue.path);
    const name = issue.path.at(-1);
    return (
      issue.message === isMissing &&
      isSame(other.path, issue.path.slice(0, -1)) &&
      other.keys.some((key) => nearName(key, [String(name)]) !== undefined)
    );
  });
}

function isSame(left: Path, right: Path): boolean {
  return left.length === right.length && left.every((step, index) => step === right[index]);
}

const mostListed = 12;

function listing(known: readonly string[]): string {
  return known.length === 0 || known.length > mostListed ? '' : `; known are ${known.join(', ')}`;
}

/** Names of the settings that a mapping in the section may have. */
function settingsAt(schema: z.ZodType, path: Path): string[] {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  let nodes = formsOf([root], root);
  for (const step of path) {
    const below = nodes.flatMap((node) => {
      if (typeof step === 'number') return node.items ?? [];
      return (
        node.properties?.[String(step)] ??
        (typeof node.additionalProperties === 'object' ? node.additionalProperties : [])
      );
    });
    nodes = formsOf(below.flat(), root);
  }
  return nodes.flatMap((node) => Object.keys(node.properties ?? {}));
}

interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
}

function formsOf(nodes: readonly JsonSchema[], root: JsonSchema): JsonSchema[] {
  return nodes.flatMap((node): JsonSchema[] => {
    const referred = root.$defs?.[node.$ref?.split('/').at(-1) ?? ''];
    const forms = [...(node.anyOf ?? []), ...(node.allOf ?? []), ...(referred === undefined ? [] : [referred])];
    return [node, ...formsOf(forms, root)];
  });
}

/** The problem of a value with several valid forms: that of the form it resembles most, else the list of forms. */
function inBestForm(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const meant = issue.errors
    .filter((branch) => !branch.some(isOfOtherForm))
    .toSorted((left, right) => depthOf(right) - depthOf(left))[0];
  if (meant !== undefined)
    return meant.flatMap((inner) => inBestForm({ ...inner, path: [...issue.path, ...inner.path] }));
  if (issue.message === isMissing) return [issue];
  const forms = [...new Set(issue.errors.flatMap((branch) => branch.flatMap(formNamesIn)))];
  return forms.length === 0 ? [issue] : [{ ...issue, message: `must be ${forms.join(' or ')}` }];
}

/** Whether the whole value, not a member of it, mismatches the form. */
function isOfOtherForm(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'invalid_union') return issue.errors.every((branch) => branch.some(isOfOtherForm));
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function depthOf(branch: readonly Issue[]): number {
  return Math.max(...branch.map(({ path }) => path.length));
}

const formNames: Readonly<Record<string, string>> = table({
  object: 'a mapping (name: value)',
  record: 'a mapping (name: value)',
  array: 'a list such as [one, two]',
  string: 'text',
  boolean: 'true or false',
  int: 'a whole number',
});

function formNamesIn(issue: Issue): string[] {
  if (issue.path.length > 0) return [];
  if (issue.code === 'invalid_union') return issue.errors.flatMap((branch) => branch.flatMap(formNamesIn));
  if (issue.code === 'invalid_value') return issue.values.map((value) => `"${String(value)}"`);
  return issue.code === 'invalid_type' ? [formName(issue.expected)] : [];
}

function formName(expected: string): string {
  return formNames[expected] ?? `a ${expected}`;
}

/** The message of an issue; for a key that is not accepted, that of the keys' schema. */
function ownWords(issue: Issue): string {
  const inner = issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined;
  return lowerFirst(inner ?? issue.message);
}

const isMissing = 'is missing';

/** Instead of the schema library's own message; undefined: the schema has one. */
function sentenceOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (
    issue.input === undefined &&
    (issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.code === 'invalid_union')
  )
    return isMissing;
  switch (issue.code) {
    case 'invalid_type':
      return typeSentence(String(issue['expected']), issue.input);
    case 'invalid_value': {
      const names = (issue['values'] as readonly unknown[]).map(String);
      const listed = listOf(names.map((name) => `"${name}"`));
      return `must be ${listed}${typeof issue.input === 'string' ? didYouMean(issue.input, names) : ''}`;
    }
    case 'too_small':
      return boundSentence('at least', 'more than', issue['minimum'], issue);
    case 'too_big':
      return boundSentence('at most', 'less than', issue['maximum'], issue);
    case 'invalid_format':
      return issue['format'] === 'url' ? 'must be an http(s) URL' : 'is not written as it must be';
    case 'invalid_union':
      return 'has none of the forms that it may have';
    default:
      return undefined;
  }
}

function typeSentence(expected: string, input: unknown): string {
  const form = formName(expected);
  if (input === null) return `has no value; it must be ${form}`;
  if (expected === 'string' && typeof input !== 'object') return `must be text: quote it, as in "${String(input)}"`;
  if (typeof input === 'number' && (expected === 'int' || expected === 'number')) return `must be ${form}`;
  const given = Array.isArray(input)
    ? 'a list'
    : typeof input === 'object'
      ? 'a mapping'
      : typeof input === 'string'
        ? 'text'
        : `a ${typeof input}`;
  return `must be ${form}, not ${given}`;
}

function boundSentence(inclusive: string, exclusive: string, bound: unknown, issue: z.core.$ZodRawIssue): string {
  const isOne = bound === 1;
  const limit = `${issue['inclusive'] === false ? exclusive : inclusive} ${String(bound)}`;
  if (issue['origin'] === 'string') return isOne ? 'must not be empty' : `must have ${limit} characters`;
  if (issue['origin'] === 'array') return isOne ? 'must have at least one entry' : `must have ${limit} entries`;
  return `must be ${limit}`;
}

function listOf(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function written(path: Path): string {
  return path.map(String).join('.') || 'the file';
}

function lowerFirst(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
