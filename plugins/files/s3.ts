/** Files in a bucket of an S3-compatible store. Loaded only if one is configured. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { GetObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { S3Driver } from 'flydrive/drivers/s3';
import type { Host } from '../../core/contract/contract.ts';
import { markPassing } from '../../core/contract/errors.ts';
import { Outage } from '../../core/contract/outage.ts';
import { type ByteStore, keyOf, type Span } from './bytes.ts';
import type { FilesConfig } from './config.ts';

/** A presigned address is used at once, as the client is redirected to it. */
const longestLinkMs = 300_000;
/** Attempts for each request. */
const attempts = 3;

const askMs = 5_000;
/** A key under which nothing is stored. */
const nothing = 'outage-probe';
const mostCauses = 10;
const ownCodes =
  /^(?:ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EPIPE|EHOST|ENET|EPROTO|CERT_|ERR_TLS|UND_ERR|DEPTH_ZERO|SELF_SIGNED)/;

type WatchTools = Pick<Host, 'clock' | 'log' | 'every'>;

/** `directory` holds the files that are stored by path. */
export function openBucket(directory: string, config: FilesConfig['s3'], host: WatchTools): ByteStore {
  const { bucket, prefix } = config;
  const client = new S3Client(clientOptions(config));
  const driver = new S3Driver({ client, bucket, visibility: 'private', supportsACL: false });
  const objectKey = (id: string) => `${prefix}${keyOf(id)}`;
  const store: ByteStore = {
    async put(id, content, { mediaType, bytes }) {
      const options = { contentType: mediaType, contentLength: bytes };
      if (content instanceof Uint8Array) await driver.put(objectKey(id), content, options);
      else await again(() => driver.putStream(objectKey(id), createReadStream(join(directory, content.path)), options));
    },
    async open(id, { first, last }: Span) {
      try {
        const command = new GetObjectCommand({ Bucket: bucket, Key: objectKey(id), Range: `bytes=${first}-${last}` });
        const body = (await client.send(command)).Body as Readable;
        body.on('error', () => {});
        return { body, close: () => void body.destroy() };
      } catch (error) {
        if (statusOf(error) === 404) return undefined;
        throw error;
      }
    },
    remove: (id) => driver.delete(objectKey(id)),
    close: () => client.destroy(),
  };
  if (!config.redirect) return watched(store, host);
  const leading: ByteStore = {
    ...store,
    link: (id, { mediaType, disposition, lifetimeMs }) =>
      driver.getSignedUrl(objectKey(id), {
        // Seconds.
        expiresIn: Math.max(1, Math.floor(Math.min(lifetimeMs, longestLinkMs) / 1000)),
        contentType: mediaType,
        contentDisposition: disposition,
      }),
  };
  return watched(leading, host);
}

/** Its errors pass for clients, an outage has lines of its own, and it is asked until it answers again. */
function watched(store: ByteStore, { clock, log, every }: WatchTools): ByteStore {
  const [began, over] = ['the bucket of files does not answer', 'the bucket of files answers again'];
  const outage = new Outage({ clock, log, began, over, fields: { store: 'bucket' } });
  const noted = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      const result = await answer;
      outage.succeeded();
      return result;
    } catch (error) {
      if (!(error instanceof Error && isOfBucket(error))) throw error;
      outage.failed(error);
      throw outage.mark(markPassing(error));
    }
  };
  every(askMs, 'ask the bucket that does not answer', () =>
    outage.lastsMs === undefined
      ? undefined
      : noted(store.open(nothing, { first: 0, last: 0 })).then((file) => file?.close()),
  );
  return {
    awayMs: () => outage.lastsMs ?? 0,
    put: (id, content, details) => noted(store.put(id, content, details)),
    open: (id, span) => noted(store.open(id, span)),
    remove: (id) => noted(store.remove(id)),
    // Computed here, without the bucket.
    ...(store.link === undefined ? {} : { link: store.link.bind(store) }),
    close: () => store.close(),
  };
}

/** It was not reached, it fails or is overloaded, or it does not let the gateway in; other errors are those of a file or of one request. */
function isOfBucket(error: Error): boolean {
  let at: unknown = error;
  for (let depth = 0; at instanceof Error && depth < mostCauses; depth += 1, at = at.cause) {
    const { $metadata, code, name } = at as Error & { $metadata?: { httpStatusCode?: number }; code?: unknown };
    const status = $metadata?.httpStatusCode;
    if (status !== undefined) return status >= 500 || [401, 403, 404, 429].includes(status);
    if (name === 'TimeoutError' || (typeof code === 'string' && ownCodes.test(code))) return true;
  }
  return false;
}

/** The client sends no stream a second time, so that a kept connection which the store closes just then would cost the file. */
async function again(put: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await put();
    } catch (error) {
      if (attempt === attempts || (statusOf(error) ?? 500) < 500) throw error;
    }
  }
}

/** Status that the store answered; undefined: none. */
function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

function clientOptions(config: FilesConfig['s3']): S3ClientConfig {
  const { endpoint, region, access_key_id: accessKeyId, secret_access_key: secretAccessKey } = config;
  return {
    region,
    forcePathStyle: config.path_style,
    // Few stores other than S3 itself support trailing checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: attempts,
    requestHandler: { connectionTimeout: 10_000, requestTimeout: 60_000 },
    ...(endpoint === '' ? {} : { endpoint }),
    ...(accessKeyId === '' ? {} : { credentials: { accessKeyId, secretAccessKey } }),
  };
}
