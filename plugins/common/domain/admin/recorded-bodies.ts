/** The console's contract: the service of recorded request and answer bodies, which an operator enables. Types alone. */
import { defineService } from '../../../../core/contract/contract.ts';

/** One body, masked before it was stored. */
export interface RecordedBody {
  readonly text: string;
  /** Its content type, without parameters. */
  readonly mediaType: string | undefined;
  /** Length of the whole body. */
  readonly bytes: number;
  /** Bytes that are missing in the text. */
  readonly leftOut: number;
}

export interface RequestBodies {
  readonly requestId: string;
  readonly accountId: string | undefined;
  readonly receivedAt: number;
  /** When they are deleted. */
  readonly expiresAt: number;
  /** undefined: there was none, or it was refused before it was read. */
  readonly request: RecordedBody | undefined;
  readonly answer: RecordedBody | undefined;
}

/** The requests that a recording covers; absent members: every account, every model. */
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
  /** The operator who started it. */
  readonly by: string;
}

/** For operators only. */
export interface RecordedBodies {
  /** false: the configuration disables recording. Earlier recordings are found until they expire. */
  readonly isEnabled: boolean;
  find(requestId: string): Promise<RequestBodies | undefined>;
  /** Deletes at once, of one request, of one account, or all. Resolves with the number of requests. */
  delete(of: { readonly requestId?: string | undefined; readonly accountId?: string | undefined }): Promise<number>;
  /** Running recordings, newest first. */
  recordings(): Promise<readonly Recording[]>;
  /** Takes effect in every process within seconds. Throws invalid_request for terms without an end, or with one too far away. */
  record(terms: RecordingTerms, by: string): Promise<Recording>;
  /** Stops one; not_found if it does not run. */
  stopRecording(id: string): Promise<void>;
}
export const recordedBodies = defineService<RecordedBodies>('recorded bodies');
