/** Checks of request members that the gateway needs; unknown members pass. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import { invalid, type RequestBody, readBody } from '../../core/json/request-body.ts';
import type { Target } from '../common/domain/upstreams.ts';
import { type BodyChanges, editBody } from '../common/kit/body-edits.ts';
import { refuseUnmetered } from '../common/wire/named.ts';

/** With duplicates, gateway and upstream could read different values. */
const singleMembers = new Set([
  'model',
  'input',
  'content',
  'requests',
  'query',
  'documents',
  'questions',
  'state',
  'dimensions',
  'encoding_format',
  'stream_format',
  'response_format',
]);

export function readJson(bytes: Uint8Array): RequestBody {
  return readBody(bytes, singleMembers);
}

/** The model's name in the body. */
export function modelOf(json: JsonObject): string {
  const { model } = json;
  if (model === undefined || model === null || model === '') throw invalid('The field "model" is missing.', 'model');
  if (typeof model !== 'string') throw invalid('The field "model" must be a string.', 'model');
  return model;
}

/** null counts as absent. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** A whole number from 1 to `most`; undefined: absent. */
export function positiveOf(json: JsonObject, field: string, most: number): number | undefined {
  const value = json[field];
  if (isAbsent(value)) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number;
  throw invalid(`The field "${field}" must be a whole number from 1 to ${most}.`, field);
}

/** One of the words; undefined: absent. */
export function wordOf<Word extends string>(json: JsonObject, field: string, words: readonly Word[]): Word | undefined {
  const value = json[field];
  if (isAbsent(value)) return undefined;
  const word = words.find((one) => one === value);
  if (word !== undefined) return word;
  throw invalid(`The field "${field}" must be one of: ${words.join(', ')}.`, field);
}

/** A text that is not empty. */
export function requiredText(json: JsonObject, field: string): string {
  const value = json[field];
  if (isAbsent(value)) throw invalid(`The field "${field}" is missing.`, field);
  if (typeof value !== 'string') throw invalid(`The field "${field}" must be a string.`, field);
  if (value === '') throw invalid(`The field "${field}" must not be empty.`, field);
  return value;
}

/** Throws for a list that is too long: a repetition cannot help. */
export function checkLength(list: readonly unknown[], field: string, most: number): void {
  if (list.length === 0) throw invalid(`The field "${field}" must not be empty.`, field);
  if (list.length <= most) return;
  throw new GatewayError(
    'invalid_request',
    `The field "${field}" has ${list.length} entries; at most ${most} are taken.`,
    {
      field,
      code: 'too_many_entries',
      shouldRetry: false,
    },
  );
}

/** The error of a target with a protocol that cannot express a field: routing tries another one. */
export function unsupportedByModel(field: string, what: string): GatewayError {
  return new GatewayError('invalid_request', `The field "${field}" is not supported by this model: ${what}.`, {
    field,
    code: 'unsupported_by_model',
    shouldRetry: false,
  });
}

/** A counter of a usage object that vendors name differently. */
export function firstNumber(source: unknown, ...names: readonly string[]): unknown {
  if (!isObject(source)) return undefined;
  return names.map((name) => source[name]).find((value) => !isAbsent(value));
}

/** The client's body for this target, but for the model's name; what it names beside its model is refused. */
export function relayedBody(body: RequestBody, target: Target, changes: BodyChanges = {}): ReturnType<typeof editBody> {
  refuseUnmetered(target.protocol, body.json, new Set([target.model]), target.upstream.dropFields[target.protocol]);
  return editBody(body, target, changes);
}
