/** Bodies: whatever bytes a client sends are read as JSON.parse reads them, or refused by a GatewayError. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../core/contract/errors.ts';
import { parseJson } from '../../../core/json/parse.ts';
import { type RequestBody, readBody } from '../../../core/json/request-body.ts';
import { defaultMaxDepth } from '../../../core/json/splice.ts';
import { families, recordings } from '../../helpers/recordings.ts';
import type { Target } from '../target.ts';

const once = new Set(['model', 'stream', 'messages', 'input', 'contents', 'max_tokens']);
const forbidden = ['__proto__', 'api_base', 'base_url', 'api_key', 'extra_headers'];

export const requestBodies: readonly Buffer[] = families
  .flatMap((family) => recordings(family))
  .flatMap(({ request }) => (request === undefined || request.length > 4_096 ? [] : [request]));

export const jsonDictionary: readonly string[] = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\"',
    '\\u0022',
    '\\u005c',
    '"model"',
    '"mod\\u0065l":1,',
    '"stream":true,',
  ],
  ...[
    '"__proto__":{},',
    '"api_key":1,',
    '\u00ef\u00bb\u00bf',
    '\u00ff',
    '\u00c3',
    '\u0000',
    ' ',
    '\n',
    '/**/',
    "'",
    'null',
    'nul',
    '1.',
    '.1',
  ],
  ...[
    '01',
    '1e',
    '+1',
    '-',
    '[[[[[[[[',
    '{"":{"":{"":',
    '[]'.repeat(40),
    '['.repeat(140),
    '"a":1,'.repeat(20),
    'é',
    '\u2028',
  ],
];

export const body: Target = {
  name: 'body',
  corpus: [...requestBodies, Buffer.from('{}'), Buffer.from(' {"model":"m","a":[1,{"b":"\\u0041]}"}],"n":-1.5e3} ')],
  dictionary: jsonDictionary,
  check(bytes) {
    const read = readOrRefuse(bytes);
    const parsed = parse(bytes);
    if (read === undefined) {
      assert.ok(parsed === undefined || mayRefuse(bytes, parsed), 'a valid body was refused');
      return;
    }
    assert.ok(parsed !== undefined, 'a body was accepted that JSON.parse refuses');
    assert.deepEqual(read.json, parsed);
    checkMembers(bytes, read);
  },
};

function readOrRefuse(bytes: Buffer): RequestBody | undefined {
  try {
    return readBody(bytes, once);
  } catch (error) {
    if (error instanceof GatewayError && error.status < 500) return undefined;
    throw error;
  }
}

/** undefined: no JSON object. */
function parse(bytes: Buffer): object | undefined {
  try {
    const value: unknown = parseJson(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A refusal of valid JSON needs one of the reasons that the function names. */
function mayRefuse(bytes: Buffer, parsed: object): boolean {
  const text = bytes.toString('utf8');
  if (forbidden.some((name) => Object.hasOwn(parsed, name)) || depthOf(text) > defaultMaxDepth) return true;
  return (
    text.length > 100 * 1024 || namesOf(text).some((name, index, all) => once.has(name) && all.indexOf(name) < index)
  );
}

/** Names of the outer object's members, in order: read by a parser of its own. */
function namesOf(text: string): string[] {
  const names: string[] = [];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth === 1 && /^\s*:/.test(text.slice(index + token.length, index + token.length + 64)))
      names.push(JSON.parse(token) as string);
  }
  return names;
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (token === '{' || token === '[') deepest = Math.max(deepest, ++depth);
    else if (token === '}' || token === ']') depth--;
  }
  return deepest;
}

function checkMembers(bytes: Buffer, { json, scan }: RequestBody): void {
  assert.deepEqual(new Set(scan.members.map(({ key }) => key)), new Set(Object.keys(json)));
  const last = new Map(scan.members.map((member) => [member.key, member]));
  for (const [key, { valueStart, end }] of last)
    assert.deepEqual(parseJson(bytes.toString('utf8', valueStart, end)), json[key], key);
}
