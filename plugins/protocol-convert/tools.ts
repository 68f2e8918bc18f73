/** What the handling of a call needs of the house: made once when the gateway starts. */
import type { Clock, Exchange } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { caller, defineLine, dropped, type ErrorShape, tell } from '../../core/vocabulary.ts';
import type { Prompt } from './canon.ts';
import type { Codec, ReplyContext } from './codec.ts';
import type { ProtocolConvertConfig } from './config.ts';
import { defaultFetchOptions, fetchMedia } from './fetch-media.ts';
import type { KeepsakeMemory } from './keepsake-memory.ts';
import { notTranslatableCode } from './losses.ts';
import type { Sealer } from './seal.ts';
import type { Keeper } from './state/keeper.ts';

export interface Tools {
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly memory: KeepsakeMemory;
  readonly keeper: Keeper;
  readonly config: ProtocolConvertConfig;
  /** The gateway's own error shape, if it has one. */
  shape(): ErrorShape | undefined;
}

/** How the error of a running stream is put into the gateway's own shape; undefined: it is the protocol's alone. */
export function shapeFor({ id }: Exchange, tools: Pick<Tools, 'shape'>): ReplyContext['shapeOf'] {
  const own = tools.shape();
  return own === undefined ? undefined : (error) => own.members(error, id);
}

/** Turns media given by URL into bytes. Throws invalid_request that names the URL. */
export function withBytes(
  prompt: Prompt,
  kinds: Codec['needsBytes'],
  { media }: ProtocolConvertConfig,
  signal: AbortSignal,
): Promise<Prompt> {
  if (!media.fetch) return Promise.resolve(prompt);
  const { allow_private: allowPrivate, max_bytes: maxBytes, timeout: timeoutMs, per_request: maxFiles } = media;
  const maxTotalBytes = Math.max(maxBytes, defaultFetchOptions.maxTotalBytes);
  const options = { ...defaultFetchOptions, allowPrivate, maxBytes, maxTotalBytes, timeoutMs, maxFiles };
  return fetchMedia(prompt, kinds, options, signal);
}

/** Throws when something is lost and the operator wants that refused. */
export function checkLosses(dropped: readonly string[], { on_loss: onLoss }: ProtocolConvertConfig): void {
  const field = dropped[0];
  if (onLoss === 'report' || field === undefined) return;
  throw new GatewayError('invalid_request', `The field "${field}" is not taken by this model.`, {
    field,
    code: notTranslatableCode,
  });
}

const wayLine = defineLine('protocol-convert.way', (way: string, lost: string | null) =>
  lost === null ? way : `${way}; left out: ${lost}`,
);

/** States what was left out for this attempt, and tells how it is worded. */
export function noteWay(
  exchange: Exchange,
  way: string,
  lost: readonly string[],
  { clock }: Pick<Tools, 'clock'>,
): void {
  exchange.set(dropped, lost);
  tell(exchange, clock.now(), wayLine, [way, lost.length === 0 ? null : lost.join(', ')]);
}

/** Whose sealed texts and kept answers these are; without `auth` they are everybody's. */
export function accountOf(exchange: Exchange): string {
  return exchange.find(caller)?.accountId ?? '';
}
