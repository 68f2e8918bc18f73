/** Files in a bucket of an S3-compatible store. Loaded only if one is configured. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { GetObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { S3Driver } from 'flydrive/drivers/s3';
import { type ByteStore, keyOf, type Span } from './bytes.ts';
import type { FilesConfig } from './config.ts';

/** A presigned address is used at once, as the client is redirected to it. */
const longestLinkMs = 300_000;
/** Of each request. */
const attempts = 3;

/** `directory` holds the files that are stored by path. */
export function openBucket(directory: string, config: FilesConfig['s3']): ByteStore {
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
  if (!config.redirect) return store;
  return {
    ...store,
    link: (id, { mediaType, disposition, lifetimeMs }) =>
      driver.getSignedUrl(objectKey(id), {
        // Seconds.
        expiresIn: Math.max(1, Math.floor(Math.min(lifetimeMs, longestLinkMs) / 1000)),
        contentType: mediaType,
        contentDisposition: disposition,
      }),
  };
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

/** Of what the store answered; undefined: nothing. */
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
