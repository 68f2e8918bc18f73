/** References that a vendor needs as bytes: fetched by the guarded client, with the type sniffed from the content. */

import { GatewayError } from '../../../core/contract/errors.ts';
import { type GuardedClient, Unfetchable } from '../../../core/tools/guarded-fetch.ts';
import { sniffMediaType } from '../../common/kit/data-url.ts';
import { kindOfMedia } from '../../common/kit/media-types.ts';
import type { Order, Reference } from '../../common/media/adapters.ts';

const timeoutMs = 60_000;

/** Throws invalid_request that names the client's field. */
export function fetcherOf(client: GuardedClient): (order: Order, signal: AbortSignal) => Promise<Order> {
  return async (order, signal) => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const references: Reference[] = [];
    for (const reference of order.references) references.push(await fetched(client, reference, within));
    return { ...order, references };
  };
}

async function fetched(client: GuardedClient, reference: Reference, signal: AbortSignal): Promise<Reference> {
  const { source, field } = reference;
  if (!('url' in source)) return reference;
  try {
    const { bytes } = await client.get(source.url, signal);
    const base64 = bytes.toString('base64');
    // The content decides, not the server's content type.
    const mediaType = sniffMediaType(base64);
    if (mediaType === undefined || kindOfMedia(mediaType) !== 'image') throw new Unfetchable('it is no image');
    return { ...reference, source: { base64, mediaType } };
  } catch (error) {
    const why = error instanceof Unfetchable ? `: ${error.message}` : '';
    throw new GatewayError('invalid_request', `The address in "${field}" cannot be fetched${why}.`, {
      field,
      code: 'invalid_reference',
    });
  }
}
