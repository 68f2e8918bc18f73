/** Reads the recorded exchanges under tests/fixtures. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Family = 'chat' | 'responses' | 'messages' | 'gemini';
export const families: readonly Family[] = ['chat', 'responses', 'messages', 'gemini'];

export interface Recording<Of = Family> {
  readonly family: Of;
  readonly name: string;
  readonly status: number;
  readonly isStream: boolean;
  /** Path and query at the vendor. */
  readonly path: string;
  readonly model: string;
  readonly contentType: string | undefined;
  readonly headers: Record<string, string>;
  readonly fidelity: string;
  readonly features: readonly string[];
  readonly provider: string;
  readonly response: Buffer;
  readonly request: Buffer | undefined;
}

const root = join(import.meta.dirname, '../fixtures');

export function recordings(family: Family): Recording[] {
  return readdirSync(join(root, family)).map((name) => recording(family, name));
}

export function mediaRecordings<Of extends 'images' | 'video'>(family: Of): Recording<Of>[] {
  return readdirSync(join(root, family)).map((name) => recording(family, name));
}

export function recording<Of extends Family | 'images' | 'video'>(family: Of, name: string): Recording<Of> {
  const at = (file: string) => join(root, family, name, file);
  const meta = JSON.parse(readFileSync(at('meta.json'), 'utf8'));
  const request = ['request.json', 'request.body'].map(at).find(existsSync);
  return {
    family,
    name,
    status: meta.status,
    isStream: meta.streamed,
    path: meta.url_path,
    model: meta.model || 'MODEL',
    contentType: meta.response_headers['content-type'],
    headers: meta.response_headers,
    fidelity: meta.response_fidelity,
    features: meta.features,
    provider: meta.provider,
    response: readFileSync(at('response.body')),
    request: request === undefined ? undefined : readFileSync(request),
  };
}
