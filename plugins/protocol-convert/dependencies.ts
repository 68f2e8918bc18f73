/** The services and settings that the handling of a call needs, created once when the gateway starts. */

import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { ReplyContext } from '../common/canonical/codec.ts';
import { notTranslatableCode } from '../common/canonical/dropped-parameters.ts';
import { caller } from '../common/domain/accounts.ts';
import { dropped } from '../common/domain/calls.ts';
import type { ErrorShape } from '../common/domain/error-shape.ts';
import { model } from '../common/domain/models.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import type { Target } from '../common/domain/upstreams.ts';
import type { CallTransform } from '../common/wire/call-transforms.ts';
import { isToolPriced } from '../common/wire/hosted-tools.ts';
import type { IsPriced } from '../common/wire/named.ts';
import type { Opened } from '../common/wire/protocols.ts';
import type { ProtocolConvertConfig } from './config.ts';
import type { SpokenProtocol } from './relay/variants.ts';
import type { IdGuard } from './state/id-guard.ts';
import type { ResponseRecorder } from './state/response-recorder.ts';
import type { Sealer } from './translate/seal.ts';
import type { SignatureCache } from './translate/signature-cache.ts';

/** The protocols of all plugins, and their call transforms in the order of the list; complete when every plugin is set up. */
export interface Added {
  readonly protocols: ReadonlyMap<string, SpokenProtocol>;
  readonly ofPrompts: readonly CallTransform[];
  readonly ofAnswers: readonly CallTransform[];
}

export interface Tools {
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly signatureCache: SignatureCache;
  readonly responseRecorder: ResponseRecorder;
  readonly ids: IdGuard;
  readonly config: ProtocolConvertConfig;
  readonly added: Added;
  /** For how long the frames of a stream that say nothing yet are held back, in milliseconds. */
  openingMs(): number;
  /** The gateway's own error shape, if it has one. */
  shape(): ErrorShape | undefined;
}

/** One attempt of a call. */
export interface Attempt {
  readonly exchange: Exchange;
  readonly opened: Opened;
  readonly upstream: SpokenProtocol;
  readonly target: Target;
  readonly tools: Tools;
}

/** Renders the error of a running stream in the gateway's own shape; undefined: the protocol's shape alone. */
export function shapeFor({ id }: Exchange, tools: Pick<Tools, 'shape'>): ReplyContext['shapeOf'] {
  const own = tools.shape();
  return own === undefined ? undefined : (error) => own.members(error, id);
}

/** Throws when parameters were dropped and the configuration refuses that. */
export function checkDropped(dropped: readonly string[], { on_loss: onLoss }: ProtocolConvertConfig): void {
  const field = dropped[0];
  if (onLoss === 'report' || field === undefined) return;
  throw new GatewayError('invalid_request', `The field "${field}" is not taken by this model.`, {
    field,
    code: notTranslatableCode,
  });
}

const conversionEvent = defineEvent(
  'protocol-convert.form',
  (to: string, from: string | null, droppedFields: string | null) => {
    const form = from === null ? `relayed as ${to}` : `translated from ${from} to ${to}`;
    return droppedFields === null ? form : `${form}; left out: ${droppedFields}`;
  },
);

/** Sets the parameters that were dropped for this attempt, and records its protocols in the timeline; `from` null: it is relayed. */
export function recordConversion(
  exchange: Exchange,
  to: string,
  from: string | null,
  droppedFields: readonly string[],
  { clock }: Pick<Tools, 'clock'>,
): void {
  exchange.set(dropped, droppedFields);
  recordEvent(exchange, clock.now(), conversionEvent, [
    to,
    from,
    droppedFields.length === 0 ? null : droppedFields.join(', '),
  ]);
}

/** Tools of the vendor of which runs have a price for the model that serves; without a price list, all. */
export function pricedTools(exchange: Exchange, clock: Clock): IsPriced {
  return (name) => {
    const prices = exchange.find(model)?.prices;
    return prices === undefined || isToolPriced(prices, clock.now(), name);
  };
}

/** The account that sealed texts and stored responses belong to; without `auth` all clients share one. */
export function accountOf(exchange: Exchange): string {
  return exchange.find(caller)?.accountId ?? '';
}
