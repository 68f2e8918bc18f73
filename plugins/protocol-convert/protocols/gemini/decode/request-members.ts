/** Accessors for members of a client's request, with the client's own field names in errors. Pure. */
import type { GatewayError } from '../../../../../core/contract/errors.ts';
import { table } from '../../../../../core/contract/table.ts';
import { isObject, type JsonObject } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import { invalid } from '../../../request/checks.ts';
import { toSnake } from '../names.ts';
import { isSpecRequest } from './flat-request.ts';

/** Other members for the same setting. */
const successors: Readonly<Record<string, readonly string[]>> = table({
  'generationConfig.responseJsonSchema': [
    'generationConfig.responseSchema',
    'generationConfig.responseFormat',
    'generationConfig.responseMimeType',
  ],
  'generationConfig.imageConfig': ['generationConfig.responseFormat'],
});

/** The request in its official shape; errors and dropped parameters use the client's own names. */
export class RequestDecoder {
  readonly dropped: DecodeContext['dropped'];
  readonly open: DecodeContext['open'];
  readonly onForeignReasoning: DecodeContext['onForeignReasoning'];
  readonly #json: JsonObject;
  /** Spelling of members that are absent. */
  readonly #isSnake: boolean;

  constructor(json: JsonObject, { dropped, open, onForeignReasoning }: DecodeContext) {
    this.dropped = dropped;
    this.open = open;
    this.onForeignReasoning = onForeignReasoning;
    this.#json = json;
    this.#isSnake = isSpecRequest(json) || Object.keys(json).some((name) => name.includes('_'));
  }

  /** The field in the client's spelling: settings may be at the top level, and cases may be mixed. */
  name(path: string): string {
    let place: unknown = this.#json;
    let name = '';
    for (const step of this.#stepsOf(path)) {
      const isIndex = /^\d+$/.test(step);
      // A list with one element may be sent without brackets.
      if (isIndex && isObject(place)) continue;
      const key = isIndex ? step : (this.#written(place, step) ?? (this.#isSnake ? toSnake(step) : step));
      name += isIndex ? `[${key}]` : name === '' ? key : `.${key}`;
      place = (place as JsonObject | undefined)?.[key];
    }
    return name;
  }

  /** The name of a setting in the client's spelling; of members of lists, as the request's top level is spelled. */
  spelled(name: string): string {
    if (name.includes('[]')) return this.#isSnake ? toSnake(name) : name;
    const names = [name, ...(successors[name] ?? [])];
    return this.name(names.find((path) => this.#has(path)) ?? name);
  }

  #has(path: string): boolean {
    let place: unknown = this.#json;
    return this.#stepsOf(path).every((step) => {
      const key = this.#written(place, step);
      place = key === undefined ? undefined : (place as JsonObject)[key];
      return key !== undefined;
    });
  }

  #stepsOf(path: string): readonly string[] {
    const [first, second] = path.split('.');
    const isFlat =
      first === 'generationConfig' && second !== undefined && this.#written(this.#json, second) !== undefined;
    return (isFlat ? path.slice(first.length + 1) : path).match(/[^.[\]]+/g) ?? [];
  }

  /** The member's name in the request; undefined if it is absent. */
  #written(place: unknown, field: string): string | undefined {
    if (!isObject(place)) return undefined;
    return [field, toSnake(field)].find((name) => Object.hasOwn(place, name));
  }

  /** `must` completes "The field … must". */
  fault(path: string, must: string): GatewayError {
    const name = this.name(path);
    return invalid(`The field "${name}" must ${must}.`, name);
  }

  /** Records a member that the canonical format cannot express. */
  drop(path: string, value: unknown): void {
    if (!isEmptyValue(value)) this.dropped.dropField(this.name(path));
  }

  /** Like `DroppedParameters.unknown`, for a top-level member and soft parameters by their official names. */
  unknown(field: string, value: unknown, softParameters: ReadonlySet<string>): void {
    const name = this.name(field);
    if (!isEmptyValue(value))
      this.dropped.unknown(name, value, softParameters.has(field) ? new Set([name]) : new Set());
  }

  /** A number, or a number as text, as the protocol allows; undefined if absent. */
  number(json: JsonObject, field: string, path: string): number | undefined {
    const value = json[field];
    if (value === undefined || value === null) return undefined;
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
    if (typeof number === 'number' && Number.isFinite(number)) return number;
    throw this.fault(path, 'be a number');
  }

  text(json: JsonObject, field: string, path: string): string | undefined {
    const value = json[field];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'string') return value;
    throw this.fault(path, 'be a string');
  }

  object(json: JsonObject, field: string, path: string): JsonObject | undefined {
    const value = json[field];
    if (value === undefined || value === null) return undefined;
    if (isObject(value)) return value;
    throw this.fault(path, 'be an object');
  }

  /** An object instead of a list counts as a list of one, as at the protocol's vendor. */
  list(json: JsonObject, field: string, path: string): readonly unknown[] {
    const value = json[field];
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    if (isObject(value)) return [value];
    throw this.fault(path, 'be a list');
  }
}

function isEmptyValue(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  if (typeof value === 'string') return value.endsWith('_UNSPECIFIED');
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}
