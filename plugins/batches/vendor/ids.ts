/** Ids of lines at a vendor: they tell the batch and the line, and fit every vendor. Pure. */
import { hash } from 'node:crypto';

/** Names a batch in the ids of its lines. */
export const markOf = (batchId: string): string => `b${hash('sha256', batchId).slice(0, 24)}`;

export const lineIdOf = (batchId: string, number: number): string => `${markOf(batchId)}-${number}`;

/** The number of the batch's line with this id; undefined: it is none of its lines. */
export function numberIn(batchId: string, id: string): number | undefined {
  const mark = `${markOf(batchId)}-`;
  const digits = id.startsWith(mark) ? id.slice(mark.length) : '';
  return /^[1-9]\d{0,8}$/.test(digits) ? Number(digits) : undefined;
}
