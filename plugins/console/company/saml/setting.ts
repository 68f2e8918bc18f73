/** The identity provider of a company by its metadata: pasted, or at an address that is read again daily. */
import type { Host } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { SamlSettings } from '../types.ts';
import { type IdentityProvider, readMetadata } from './metadata.ts';
import { XmlFault } from './xml.ts';

const longestMs = 8_000;
const mostBytes = 1024 * 1024;

export interface Reading {
  /** Asks none of the gateway's own network, unless that is allowed. */
  readonly fetch: Host['fetch'];
  readonly isAnyAllowed: boolean;
  readonly now: number;
}

/** Throws invalid_request for the field `metadata`. */
export async function settingsBy(reading: Reading, metadata: string, emailAttribute: string): Promise<SamlSettings> {
  const isAddress = /^https?:\/\/\S+$/.test(metadata.trim());
  const metadataUrl = isAddress ? metadata.trim() : '';
  try {
    if (metadataUrl.startsWith('http:') && !reading.isAnyAllowed)
      throw new XmlFault('its address must begin with https://');
    const text = isAddress ? await textAt(reading, metadataUrl) : metadata;
    return { ...readMetadata(text, reading.now, reading.isAnyAllowed), emailAttribute, metadataUrl };
  } catch (error) {
    if (!(error instanceof XmlFault)) throw error;
    throw new GatewayError('invalid_request', `metadata: ${error.message}`, {
      field: 'metadata',
      code: 'provider_unusable',
    });
  }
}

async function textAt({ fetch }: Reading, address: string): Promise<string> {
  let answer: Awaited<ReturnType<Host['fetch']>>;
  let text: string;
  try {
    answer = await fetch(address, {
      headers: { accept: 'application/samlmetadata+xml, application/xml, text/xml' },
      signal: AbortSignal.timeout(longestMs),
      maxBytes: mostBytes,
    });
    text = await answer.text();
  } catch {
    // What stands on a private address is not for owners to learn.
    throw new XmlFault('it could not be reached');
  }
  if (!answer.ok) throw new XmlFault(`its address answered ${answer.status}`);
  return text;
}

/** What its address says now; undefined: all is as it was. Another provider at the same address is not taken. */
export async function settingsAgain(reading: Reading, before: SamlSettings): Promise<SamlSettings | undefined> {
  const after = await settingsBy(reading, before.metadataUrl, before.emailAttribute);
  if (after.entityId !== before.entityId)
    throw new GatewayError('conflict', 'The metadata is of another provider now.', { field: 'metadata' });
  const said = ({ entry, certificates }: IdentityProvider) => JSON.stringify([entry, certificates]);
  return said(after) === said(before) ? undefined : after;
}
