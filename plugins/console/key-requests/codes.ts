/** What the routes of key requests share: how often strangers may ask, forms, and how a program is named in the audit log. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ConsoleServices } from '../api/routing/router.ts';

/** Codes that one address may ask for in a time. */
const mostAsked = 20;
export const windowMs = 10 * 60_000;

export function takeTurn({ throttle }: ConsoleServices, key: string, most = mostAsked): void {
  const retryAfterMs = throttle.take(key, most, windowMs);
  if (retryAfterMs > 0) throw tooMany(retryAfterMs);
}

export const tooMany = (retryAfterMs: number) =>
  new GatewayError('rate_limited', 'Too many codes. Try again later.', { retryAfterMs });

export const formOf = <Shape extends z.ZodRawShape>(shape: Shape) => ({
  content: { 'application/x-www-form-urlencoded': { schema: z.object(shape) } },
  required: true,
});

export const reasonOf = (program: string, machine: string) => (machine === '' ? program : `${program} on ${machine}`);

export type Refusal = readonly [error: string, description: string];

/** Errors as OAuth has them (RFC 6749, 5.2). */
export const refusal = ([error, error_description]: Refusal) =>
  Response.json({ error, error_description }, { status: 400, headers: { 'cache-control': 'no-store' } });
