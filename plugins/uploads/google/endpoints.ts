/** The addresses of files as clients of Google call them, beside those that every protocol shares. */
import type { Endpoint, Exchange, Host } from '../../../core/contract/contract.ts';
import { uploadedFiles } from '../../common/domain/stored-files.ts';
import { jsonAnswer, renderError } from '../../common/kit/dialects.ts';
import { googleShape } from '../shapes.ts';
import { beginUpload } from './begin.ts';
import { continueUpload, type ResumableTools } from './resumable.ts';
import type { UploadSessions } from './sessions.ts';

export const versions = ['v1beta', 'v1', 'v1alpha'] as const;

/** `timeoutMs`: of an upload. */
export function uploadEndpoints(host: Host, sessions: UploadSessions, timeoutMs: number): Endpoint[] {
  const toolsFor = ({ request }: Exchange): ResumableTools => {
    const files = host.get(uploadedFiles);
    const shape = googleShape(files.origin(request.headers['host']));
    return { host, files, sessions, answer: (file) => jsonAnswer(JSON.stringify({ file: shape.one(file) })) };
  };
  return versions.flatMap((version): Endpoint[] => {
    const path = `/upload/${version}/files`;
    const common = {
      method: 'POST',
      operation: 'uploads',
      keeps: 'files',
      body: 'stream',
      timeoutMs,
      renderError: (error, exchange) => renderError(error, 'gemini', exchange.id),
    } satisfies Partial<Endpoint>;
    return [
      {
        ...common,
        path,
        describes:
          version === 'v1beta'
            ? [{ summary: 'Begins a resumable upload of a file, or takes a whole file.', body: { types: uploadTypes } }]
            : [],
        handle: (exchange) => beginUpload(exchange, toolsFor(exchange)),
      },
      {
        ...common,
        path: `${path}/:upload`,
        // The address itself is the secret: clients send it without their key.
        keyless: true,
        operation: 'upload-pieces',
        describes:
          version === 'v1beta'
            ? [{ summary: 'Takes a piece of a resumable upload.', body: { types: ['application/octet-stream'] } }]
            : [],
        handle: (exchange) => continueUpload(exchange, exchange.request.params['upload'] ?? '', toolsFor(exchange)),
      },
    ];
  });
}

const uploadTypes = ['application/json', 'multipart/related', 'application/octet-stream'];
