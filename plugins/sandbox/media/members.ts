/** Members that the media protocols share, read as their vendors read them. Pure. */
import { badRequest } from '../fault.ts';
import { type JsonObject, textOf, wholeOf } from '../json.ts';
import type { Size } from './canvas.ts';

export function required(body: JsonObject, field: string): string {
  const value = textOf(body[field]);
  if (value === undefined || value === '')
    throw badRequest(`Missing required parameter: '${field}'.`, field, 'missing_required_parameter');
  return value;
}

/** A value of the list, or the default for nothing or `auto`. */
export function chosen(body: JsonObject, field: string, usual: string, known?: readonly string[]): string {
  const value = textOf(body[field]);
  if (value === undefined || value === 'auto') return usual;
  if (known === undefined || known.includes(value)) return value;
  throw badRequest(`Invalid value: '${value}'.`, field, 'invalid_value');
}

export function countIn(body: JsonObject, field: string, most: number): number {
  const value = body[field];
  const count = value === undefined || value === null ? 1 : (wholeOf(value, 1) ?? most + 1);
  if (count > most) throw badRequest(`Invalid '${field}': a whole number from 1 to ${most} is needed.`, field);
  return count;
}

/** `1024x768`. */
export function pixelsIn(text: string, field: string): Size {
  if (!/^[1-9]\d{1,3}x[1-9]\d{1,3}$/.test(text)) throw badRequest(`Invalid value: '${text}'.`, field, 'invalid_value');
  const [width, height] = text.split('x').map(Number) as [number, number];
  return { width, height };
}

/** The size of so many pixels in a shape. */
export function sizeOf(ratio: string, pixels: number): Size {
  const [width, height] = ratio.split(':').map(Number) as [number, number];
  return {
    width: Math.round(Math.sqrt((pixels * width) / height)),
    height: Math.round(Math.sqrt((pixels * height) / width)),
  };
}
