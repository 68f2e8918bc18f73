/** The desk of kept bodies: what clients sent and were told, where an operator has asked for it. Types alone. */
import { defineService } from './contract.ts';

/** One body, masked before it was kept. */
export interface KeptBody {
  readonly text: string;
  /** Its content type, without parameters. */
  readonly mediaType: string | undefined;
  /** Length of the whole body as it passed. */
  readonly bytes: number;
  /** How many of them the text does not tell of. */
  readonly leftOut: number;
}

export interface KeptBodies {
  readonly requestId: string;
  readonly accountId: string | undefined;
  readonly receivedAt: number;
  /** When they are deleted. */
  readonly expiresAt: number;
  /** undefined: there was none, or it was refused before it was read. */
  readonly request: KeptBody | undefined;
  readonly answer: KeptBody | undefined;
}

/** Whose bodies are kept for a limited time; absent members: anybody's, any model's. */
export interface RecordingTerms {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
  /** Only requests that fail. */
  readonly errorsOnly: boolean;
  readonly until: number;
}
export interface Recording extends RecordingTerms {
  readonly id: string;
  readonly startedAt: number;
  /** Who asked for it. */
  readonly by: string;
}

/** Operators alone are shown any of it. */
export interface BodyDesk {
  /** false: this gateway's configuration keeps no bodies. What was kept before is still found until it expires. */
  readonly keeps: boolean;
  find(requestId: string): Promise<KeptBodies | undefined>;
  /** Deletes at once, of one request, of one account, or all. Resolves with of how many requests. */
  forget(of: { readonly requestId?: string | undefined; readonly accountId?: string | undefined }): Promise<number>;
  /** Those that run, the newest first. */
  recordings(): Promise<readonly Recording[]>;
  /** Every process follows within seconds. invalid_request for terms without an end, or one too far away. */
  record(terms: RecordingTerms, by: string): Promise<Recording>;
  /** Ends one; not_found where it does not run. */
  stopRecording(id: string): Promise<void>;
}
export const bodyDesk = defineService<BodyDesk>('body desk');
