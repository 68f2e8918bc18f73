/** What is at hand while a client's request is read, and the reading of single members. Pure. */
import type { GatewayError } from '../../../../core/errors.ts';
import { invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject } from '../../json.ts';
import { isSnake } from './flat-request.ts';
import { toSnake } from './names.ts';

/** The request is read in its official shape; faults and losses are told in the client's own. */
export class Reading {
  readonly losses: DecodeContext['losses'];
  readonly open: DecodeContext['open'];
  readonly #json: JsonObject;
  readonly #isSnake: boolean;

  constructor(json: JsonObject, { losses, open }: DecodeContext) {
    this.losses = losses;
    this.open = open;
    this.#json = json;
    this.#isSnake = isSnake(json);
  }

  /** The field as the client wrote it: settings may stand at the top, and cases may be mixed. */
  name(path: string): string {
    const [first, second] = path.split('.');
    const isFlat =
      first === 'generationConfig' && second !== undefined && this.#written(this.#json, second) !== undefined;
    let place: unknown = this.#json;
    let name = '';
    for (const step of (isFlat ? path.slice(first.length + 1) : path).match(/[^.[\]]+/g) ?? []) {
      const isIndex = /^\d+$/.test(step);
      const key = isIndex ? step : (this.#written(place, step) ?? (this.#isSnake ? toSnake(step) : step));
      name += isIndex ? `[${key}]` : name === '' ? key : `.${key}`;
      place = (place as JsonObject | undefined)?.[key];
    }
    return name;
  }

  /** The member's name as it stands there; undefined when it does not. */
  #written(place: unknown, field: string): string | undefined {
    if (!isObject(place)) return undefined;
    return [field, toSnake(field)].find((name) => Object.hasOwn(place, name));
  }

  /** `must` completes "The field … must". */
  fault(path: string, must: string): GatewayError {
    const name = this.name(path);
    return invalid(`The field "${name}" must ${must}.`, name);
  }

  /** Notes a member that asks for something which has no place in the common tongue. */
  drop(path: string, value: unknown): void {
    if (!saysNothing(value)) this.losses.dropField(this.name(path));
  }

  /** A number, perhaps written as text, as the protocol allows; undefined when absent. */
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

  list(json: JsonObject, field: string, path: string): readonly unknown[] {
    const value = json[field];
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    throw this.fault(path, 'be a list');
  }
}

function saysNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  if (typeof value === 'string') return value.endsWith('_UNSPECIFIED');
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}
