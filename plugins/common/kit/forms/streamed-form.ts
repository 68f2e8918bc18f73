/** A form that its endpoint has read as it came: what other plugins need of it, as its bytes are in no request. */
import { defineContextKey } from '../../../../core/contract/contract.ts';

export interface StreamedFormPart {
  readonly name: string;
  /** Set for files. */
  readonly filename: string | undefined;
  readonly mediaType: string | undefined;
  readonly bytes: number;
  /** In hex. */
  readonly sha256: string;
  /** The value of a member that is no file. */
  readonly text: string | undefined;
  /** The vendor's value instead of the text; absent: the text. */
  replacedBy?: string;
}

export const streamedForm = defineContextKey<readonly StreamedFormPart[]>('streamed form');
