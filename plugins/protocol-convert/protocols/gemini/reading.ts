/** What is at hand while a client's request is read, and the reading of single members. Pure. */
import type { GatewayError } from '../../../../core/errors.ts';
import { invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { isObject, type JsonObject } from '../../json.ts';
import { isFlat, isSnake } from './flat-request.ts';
import { toSnake } from './names.ts';

/** The request is read in its official shape; faults and losses are told in the client's own. */
export class Reading {
  readonly losses: DecodeContext['losses'];
  readonly open: DecodeContext['open'];
  readonly #isSnake: boolean;
  readonly #isFlat: boolean;

  constructor(json: JsonObject, { losses, open }: DecodeContext) {
    this.losses = losses;
    this.open = open;
    this.#isSnake = isSnake(json);
    this.#isFlat = isFlat(json);
  }

  /** The field as the client wrote it. */
  name(path: string): string {
    const bare = this.#isFlat ? path.replace(/^generationConfig\./, '') : path;
    return this.#isSnake ? toSnake(bare) : bare;
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
