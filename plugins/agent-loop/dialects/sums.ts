/** The usage of several turns as one. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';

/** Numbers are added at every depth; of all else the later value stays. */
export function summed(one: unknown, other: unknown): unknown {
  if (other === undefined || other === null) return one;
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  if (!isObject(one) || !isObject(other)) return other;
  const sum: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other as JsonObject)) sum[name] = summed(sum[name], value);
  return sum;
}
